// Formulas from LaTeX to MathML: on standard input a JSON table from each to how it is set, which differs where it has
// dials (a class, which Temml's strict mode forbids; the same formula without them is set strictly); on standard output
// a JSON table.
// The one argument is the file of Temml. What Temml refuses is listed with its reason, never half rendered.
"use strict";
const { readFileSync } = require("node:fs");
const { resolve } = require("node:path");

const temml = require(resolve(process.argv[2]));
const table = { inline: {}, block: {}, failed: {} };

for (const [latex, set] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  const dials = latex !== set && { strict: false, trust: ({ command }) => command === "\\class" };
  try {
    for (const style of ["inline", "block"]) {
      const options = { displayMode: style === "block", annotate: true, throwOnError: true, strict: true, trust: false };
      table[style][latex] = temml.renderToString(set, { ...options, ...dials });
    }
  } catch (error) {
    delete table.inline[latex];
    table.failed[latex] = String(error.message).split("\n")[0];
  }
}
process.stdout.write(JSON.stringify(table));
