// Formulas from LaTeX to MathML: a JSON list on standard input, a JSON table on standard output.
// The one argument is the file of Temml. What Temml refuses is listed with its reason, never half rendered.
"use strict";
const { readFileSync } = require("node:fs");
const { resolve } = require("node:path");

const temml = require(resolve(process.argv[2]));
const table = { inline: {}, block: {}, failed: {} };

for (const latex of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    for (const style of ["inline", "block"]) {
      const options = { displayMode: style === "block", annotate: true, throwOnError: true, strict: true, trust: false };
      table[style][latex] = temml.renderToString(latex, options);
    }
  } catch (error) {
    delete table.inline[latex];
    table.failed[latex] = String(error.message).split("\n")[0];
  }
}
process.stdout.write(JSON.stringify(table));
