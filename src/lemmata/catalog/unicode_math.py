r"""LaTeX formulas as one line of Unicode, for reading in a terminal.

Characters become tokens, tokens a tree (`_Parser`), the tree a line of atoms, each with its text and its kind; the
kinds decide the spaces, as in a set book (`_Setter`). What a command means stands in the tables.
"""

import re
import unicodedata
from typing import NamedTuple

__all__ = ["unicode_math"]

FORMULA = re.compile(r"(?<!\\)\$\$(.+?)\$\$|(?<!\\)\$(?!\$)(.+?)(?<!\\)\$(?!\d)", re.S)
_WORDS = re.compile(r"\\(?:text\w*|mbox|math(?:rm|it|sf|tt)|operatorname\*?)\s*\{(?P<words>[^{}]*)\}")
_BEGIN = re.compile(r"\\begin\s*\{(?P<grid>\w+)\*?\}(?:\{[lcr|]*\})?")
_TOKEN = re.compile(rf"{_WORDS.pattern}|{_BEGIN.pattern}|\\(?:left|right)\s*\.|\\[A-Za-z]+|\\.|\s+|:=|=:|.", re.S)
_SILENT = re.compile(  # sizes, weights and the like, which a terminal does not show
    r"\s+|\\([!/]|(left|right)\s*\.?|[bB]igg?[lrm]?|middle|(no)?limits|(display|text|script)style|math(bf|rm|it|op|rel|bin)"
    r"|text|operatorname|boldsymbol|bm|boxed|underbrace|overbrace|substack|nonumber|notag)"
)
_DEEPEST = 40  # a formula nested deeper than this is noise: it is read flat instead of exhausting the stack
_SPACES = {r"\ ": " ", "~": " ", r"\,": " ", r"\:": " ", r"\;": " ", r"\quad": "  ", r"\qquad": "  "}
_ALIASES = r"""\leq \le \geq \ge \neq \ne \leqslant \le \geqslant \ge \rightarrow \to \implies \Rightarrow \ldots \dots
    \Leftrightarrow \iff \bot \perp \land \wedge \lor \vee \lnot \neg \varnothing \emptyset \lbrace \{ \rbrace \}
    \vert | \lvert | \rvert | \Vert \| \lVert \| \rVert \| \dfrac \frac \tfrac \frac \cfrac \frac \dbinom \binom \ast *
    \stackrel \overset \widehat \hat \widetilde \tilde \overline \bar \mathscr \mathcal \longrightarrow \to \colon :"""
_ALIAS: dict[str, str] = dict(zip(_ALIASES.split()[::2], _ALIASES.split()[1::2], strict=True))
# Triples of name, Unicode and ASCII; pairs after @~, where the name is the ASCII; after @= the name is all three.
_TABLE = r"""
    @~ord alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ
    mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ
    Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω perp ⊥ angle ∠ @~quant forall ∀ exists ∃ nexists ∄
    @ord infty ∞ inf emptyset ∅ {} ell ℓ l top ⊤ ^T prime ′ ' dagger † + dots … ... cdots ⋯ ... vdots ⋮ ... ddots ⋱ ...
    @pre partial ∂ d nabla ∇ grad neg ¬ not @bin - − - cdot · * times × x div ÷ / pm ± +- mp ∓ -+ odot ⊙ (*) oplus ⊕ (+)
    otimes ⊗ (x) oslash ⊘ (/) circ ∘ o star ⋆ * cup ∪ union cap ∩ intersect setminus ∖ minus wedge ∧ and vee ∨ or
    bmod mod mod @=bin + * @=rel = < > := =: @~rel in ∈ notin ∉ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ @rel le ≤ <=
    ge ≥ >= ne ≠ != ll ≪ << gg ≫ >> approx ≈ ~= sim ∼ ~ simeq ≃ ~= cong ≅ ~= equiv ≡ == doteq ≐ := mid | | propto ∝ ~
    prec ≺ < succ ≻ > preceq ≼ <= succeq ≽ >= ni ∋ contains to → -> leftarrow ← <- Rightarrow ⇒ => Leftarrow ⇐ <=
    leftrightarrow ↔ <-> iff ⇔ <=> mapsto ↦ |-> uparrow ↑ up downarrow ↓ down parallel ∥ || @op sum ∑ sum prod ∏ prod
    int ∫ int iint ∬ int oint ∮ int bigcup ⋃ union bigcap ⋂ intersect bigoplus ⨁ (+) @=op max min sup inf lim arg argmax
    argmin limsup liminf @open langle ⟨ < lfloor ⌊ floor( lceil ⌈ ceil( @close rangle ⟩ > rfloor ⌋ ) rceil ⌉ )
    @=open ( [ { @=close ) ] } @=bar | @bar \| ‖ || @=punct , ; @punct \ ; ; @=colon : @=slash / @=post !"""
_SYMBOLS = {}
for _kind, *_words in map(str.split, _TABLE.split("@")[1:]):
    _step = {"=": 1, "~": 2}.get(_kind[0], 3)
    for _name, _sign, _plain in zip(*(_words[at::_step] for at in (0, _step // 2, _step - 1)), strict=True):
        _SYMBOLS[_name] = (_sign, _name if _step == 2 else _plain, _kind.lstrip("=~"))
_SYMBOLS |= {entry[0]: entry for entry in _SYMBOLS.values() if not entry[0].isascii()}
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "dot": "\u0307", "ddot": "\u0308", "vec": "\u20d7"}
_ACCENTS |= {"check": "\u030c", "underline": "\u0332", "not": "\u0338"}
_ARITY = dict.fromkeys([*_ACCENTS, "sqrt", "xrightarrow", "mathbb", "mathcal", "phantom"], 1)
_ARITY |= dict.fromkeys(["frac", "binom", "overset"], 2)
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALPHABETS = {
    "mathbb": str.maketrans(_CAPITALS + "01", "𝔸𝔹ℂ𝔻𝔼𝔽𝔾ℍ𝕀𝕁𝕂𝕃𝕄ℕ𝕆ℙℚℝ𝕊𝕋𝕌𝕍𝕎𝕏𝕐ℤ𝟘𝟙"),
    "mathcal": str.maketrans(_CAPITALS, "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵"),
}
_UP = "0123456789+−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWℓβγδθφχ"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂˡᵝᵞᵟᶿᵠᵡ"
_DOWN, _LOWERED = "0123456789+−=()aehijklmnoprstuvxℓβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓₗᵦᵧᵨᵩᵪ"
_SCRIPTS = {  # and the signs that are their own script
    "^": dict(zip(_UP + "′″⊤⊥*†", _RAISED + "′″⊤⊥*†", strict=True)),
    "_": dict(zip(_DOWN + ",", _LOWERED + ",", strict=True)),
}
_FRACTIONS = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/8": "⅛"}
_PLAIN = {sign: plain for sign, plain, _ in _SYMBOLS.values()} | {s: f"({text})" for text, s in _FRACTIONS.items()}
_PLAIN |= {mark: "_" + name for name, mark in _ACCENTS.items()}
_PLAIN |= {"√": "sqrt", "∛": "cbrt", "∜": "root4", "—": "--", "″": "''"}
_OPEN, _CLOSE = r"( [ \{ \langle \lfloor \lceil".split(), r") ] \} \rangle \rfloor \rceil".split()
_ENDS = ("}", "&", r"\\", r"\end")
_BEFORE_SIGN = set("none open bin rel punct op fn pre slash quant text space".split())  # here a minus is a sign
_FACTOR = set("ord pre fence op fn word quant frac".split())


def unicode_math(text: str, plain: bool = False) -> str:
    r"""Set every `$...$` and `$$...$$` of a text in Unicode, or with `plain` in ASCII; the rest is left as it is.

    Malformed formulas never raise: an unknown command prints its name, an unbalanced brace is dropped.

    >>> unicode_math(r"At most $\lfloor R^2/\gamma^2\rfloor$ updates, as $w^\top w_t\ge t\gamma$.")
    'At most ⌊R²/γ²⌋ updates, as w⊤wₜ ≥ tγ.'
    >>> unicode_math(r"$H(x)=-\frac12\sum_{i,j}w_{ij}x_ix_j$", plain=True)
    'H(x) = -(1/2) sum_{i,j} w_{ij} x_i x_j'
    """

    def typeset(found: re.Match) -> str:
        setter = _Setter()
        line = setter.join(setter.atoms(_Parser(found[1] or found[2]).row())).strip()
        return _ascii_line(line) if plain else line

    return FORMULA.sub(typeset, text)


class _Parser:
    """Tokens to a tree of tuples: ("row", nodes), ("symbol", token), ("scripts", base, low, high) and the like."""

    def __init__(self, source: str):
        tokens = [found[0] for found in _TOKEN.finditer(source)]
        self.tokens = [_ALIAS.get(token, token) for token in reversed(tokens) if not _SILENT.fullmatch(token)]
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def next(self) -> str:
        return self.tokens.pop() if self.tokens else ""

    def row(self, *stops: str) -> tuple:
        nodes = []
        while (token := self.peek()) and token not in stops:
            nodes.append(self.item() if token not in _ENDS else ("symbol", self.next()))
        return "row", nodes

    def item(self) -> tuple:
        base, low, high = ("row", []) if self.peek() in ("^", "_", "'") else self.atom(), [], []
        while (mark := self.peek()) in ("^", "_", "'"):
            self.next()
            (low if mark == "_" else high).append(("symbol", r"\prime") if mark == "'" else self.atom())
        return ("scripts", base, ("row", low), ("row", high)) if low or high else base

    def atom(self) -> tuple:
        if self.peek() in ("", *_ENDS):
            return "row", []
        self.depth += 1
        node = self.node(self.next()) if self.depth < _DEEPEST else ("symbol", self.next())
        self.depth -= 1
        return node

    def node(self, token: str) -> tuple:
        if token == "{":
            inside = (self.row("}"), self.next())[0]
            return ("words", ",") if inside == ("row", [("symbol", ",")]) else inside  # 50{,}257 is one number
        if token in _OPEN:
            inside = self.row(*_CLOSE, *_ENDS)
            closed = self.peek() in _CLOSE
            return ("fence", token, inside, self.next()) if closed else ("row", [("symbol", token), inside])
        if words := _WORDS.fullmatch(token):
            return "words", words["words"]
        if begin := _BEGIN.fullmatch(token):
            return self.grid(begin["grid"])
        if token == r"\sqrt" and self.peek() == "[":
            _, index, _ = self.next(), self.row("]"), self.next()
            return "call", "sqrt", [self.atom(), index]
        count = _ARITY.get(token[1:])
        return ("call", token[1:], [self.atom() for _ in range(count)]) if count else ("symbol", token)

    def grid(self, name: str) -> tuple:
        rows = [[self.row(*_ENDS)]]
        while (mark := self.next()) in ("&", r"\\", "}"):
            rows += [[]] if mark == r"\\" else []
            rows[-1].append(self.row(*_ENDS))
        return "grid", name, (rows, self.atom())[0]  # the atom is the name after \end


class _Atom(NamedTuple):
    text: str
    kind: str


_NONE = _Atom("", "none")


class _Setter:
    """The tree to atoms, the atoms to a line."""

    tight = 0  # how deep in scripts, which have no spaces

    def atoms(self, node: tuple) -> list[_Atom]:
        return [a for n in node[1] for a in self.atoms(n)] if node[0] == "row" else getattr(self, node[0])(*node[1:])

    def fence(self, left: str, inside: tuple, right: str) -> list[_Atom]:
        line = self.atoms(inside)
        bars = [at for at, atom in enumerate(line) if atom.kind == "bar"]
        such = [at for at, atom in enumerate(line) if atom.kind == "colon"] or (bars if len(bars) == 1 else [])
        if left == r"\{" and such:
            line[such[0]] = _Atom(line[such[0]].text, "rel")  # {x : ...}, {x | ...}
        text, edges = self.join(line), [self.symbol(edge)[0].text for edge in (left, right)]
        text = text if " " in text.replace(", ", ",") else text.replace(", ", ",")  # (x,y) but (s + 1, n)
        return [_Atom(edges[0] + text + edges[1], "fence")]

    def symbol(self, token: str) -> list[_Atom]:
        if token in ("", "{", "}", "&", "$", "\\"):
            return []
        name = token[1:] if token[0] == "\\" and token != r"\|" else token
        sign, _, kind = _SYMBOLS.get(name) or (name, name, "fn" if len(name) > 1 else "ord")
        return [_Atom(_SPACES[token], "space") if token in _SPACES else _Atom(sign, kind)]

    def words(self, raw: str) -> list[_Atom]:
        text = re.sub(r"[$\\]", "", re.sub(r"\\[ ,;:]|~", " ", raw))
        return [_Atom(text, "text" if " " in text else "word" if len(text) > 1 else "ord")] if text else []

    def scripts(self, base: tuple, low: tuple, high: tuple) -> list[_Atom]:
        line = self.atoms(base) or [_Atom("", "ord")]
        if line[-1].kind == "frac" or (base[0] == "row" and len(line) > 1):
            line = [_Atom(f"({self.join(line)})", "fence")]
        text, kind = line[-1]
        under, over = self.script(low, "_", text), self.script(high, "^", text)
        swap = under[:1] == "_" and over[:1] not in ("^", "⊤") and kind != "op"  # σ²_max
        return [*line[:-1], _Atom(text + (over + under if swap else under + over), kind)]

    def script(self, node: tuple, mark: str, base: str) -> str:
        self.tight += 1
        line = self.atoms(node)
        text = self.join(line).replace("′′", "″")
        self.tight -= 1
        table, words = _SCRIPTS[mark], re.findall("[A-Za-z]{3,}", text)
        named = any(set(word) - set("ijklmnpqrst") for word in words)  # emp is a word, ijk are indices
        named = named or any(atom.kind in ("op", "word", "text") for atom in line)
        exponent = mark == "^" and base == "e" and len(text) > 1  # the argument of exp is read, not glanced at
        if set(text) <= set(table) and not named and not exponent:
            return "".join(table[c] for c in text)
        core = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
        bare = core.isalnum() and not set(core) & set(_RAISED + _LOWERED) and (mark == "_" or named)
        if bare or len(core) == 1 or re.fullmatch(r"\([^()]*\)|\[[^\[\]]*\]", text):
            return mark + text
        return f"{mark}[{text}]" if "(" in text else f"{mark}({text})"

    def call(self, name: str, args: list) -> list[_Atom]:
        if name == "overset":
            return self.scripts(args[1], ("row", []), args[0])
        lines = [self.atoms(arg) for arg in args]
        text, *more = [self.join(line) for line in lines]
        kind = "rel" if name == "xrightarrow" else "ord"
        if name == "frac":
            text, kind = self.fraction(*lines)
        elif name == "sqrt":
            bare = not self.compound(lines[0], below=True) and not set(text) & set(_RAISED + "^_")
            text = {"3": "∛", "4": "∜"}.get("".join(more), "√") + (text if bare else f"({text})")
        elif name == "binom":
            text = f"({text} choose {more[0]})"
        elif name == "xrightarrow":
            text = f"—{text}→"
        elif name in _ALPHABETS:
            text = text.translate(_ALPHABETS[name])
        elif name in _ACCENTS and len(lines[0]) == 1:
            text, kind = unicodedata.normalize("NFC", text[:1] + _ACCENTS[name] + text[1:]), lines[0][0].kind
        else:
            text = f"{name}({text})" if name in _ACCENTS and text else ""
        return [_Atom(text, kind)] if text else []

    def fraction(self, top: list[_Atom], bottom: list[_Atom]) -> _Atom:
        over, under = self.join(top), self.join(bottom)
        if f"{over}/{under}" in _FRACTIONS:
            return _Atom(_FRACTIONS[f"{over}/{under}"], "ord")
        signs = {line[0].text[:1] for line in (top, bottom) if line}
        derivative = signs in ({"∂"}, {"d"}) and bottom and (bottom[0].kind == "pre" or len(bottom) == 2)
        over = f"({over})" if self.compound(top) else over
        under = f"({under})" if self.compound(bottom, below=True) and not derivative else under
        return _Atom(f"{over}/{under}", "diff" if derivative and len(top) == 1 else "frac")

    def compound(self, atoms: list[_Atom], below: bool = False) -> bool:
        """Whether a numerator, or the denominator below, needs brackets."""
        line, units = [atom for atom in self.settle(atoms) if atom.kind != "space"], 0
        for before, (text, kind), after in zip([_NONE, *line], line, [*line[1:], _NONE], strict=False):
            if kind in ("bin", "rel", "punct", "op", "text", "frac", "diff", "slash", "quant"):
                return True
            if (kind in ("fn", "word") and after.kind != "fence") or (kind == "pre" and below and text == "−"):
                return True
            applied = kind == "fence" and (before.text[:1].isalpha() or before.text[:1] == "[") and " " not in text
            units += kind in ("ord", "fence") and not applied and not (text.isdigit() and before.text.isdigit())
        return below and units > 1

    def grid(self, name: str, rows: list) -> list[_Atom]:
        lines = [row for row in ([self.atoms(cell) for cell in row] for row in rows) if any(row)]
        cells = [[self.join(cell) for cell in row] for row in lines]
        if name == "cases":
            body = "; ".join(" if ".join(filter(None, row)) for row in cells).replace(", if", " if")
            return [_Atom("{" + re.sub(" if (if|for|when|else|otherwise)", r" \1", body) + "}", "fence")]
        if name.endswith("matrix") or name == "array":
            gap = ", " if any(" " in cell for row in cells for cell in row) else " "
            left, right = {"p": "()", "b": "[]", "v": "||"}.get(name[0], ("", ""))
            return [_Atom(left + "; ".join(gap.join(row) for row in cells) + right, "fence")]
        line = []  # of a calculation: each row goes on with a relation, or starts anew
        for row in ([atom for cell in row for atom in cell] for row in lines):
            line += [_Atom(";", "punct")] * (line != [] and row[0].kind != "rel" and line[-1].kind != "punct") + row
        return line

    def settle(self, atoms: list[_Atom]) -> list[_Atom]:
        """Decide what depends on the neighbours: bars, signs, and fractions that need brackets."""
        line, bars = [], []
        for at, (text, kind) in enumerate(atoms):
            before, after = [*line[-1:], _NONE][0], next((a for a in atoms[at + 1 :] if a.kind != "space"), _NONE)
            if kind == "bar" and bars and before.kind not in _BEFORE_SIGN and text.startswith(line[bars[-1]].text):
                start = bars.pop()
                text, kind = line[start].text + self.join(line[start + 1 :]) + text, "fence"
                del line[start:]
            elif kind == "bar":
                bars.append(len(line))
                kind = "open"
            elif kind == "bin" and (before.kind in _BEFORE_SIGN or after.kind in ("close", "punct", "rel", "none")):
                kind = "pre" if before.kind in _BEFORE_SIGN else "ord"
            elif kind == "colon":
                kind = "punct"
            elif kind == "frac":
                misread = after.kind in _FACTOR or (after.kind == "bar" and not bars) or before.kind in ("fn", "word")
                misread |= before.kind in ("ord", "fence") and (text[0].isdigit() or before.text[:1] in ("𝔼", "ℙ", "("))
                text, kind = (f"({text})", "fence") if misread or before.text[:1] == "∏" else (text, kind)
            elif (text, after.kind) == ("d", "ord") and any(a.text[:1] in ("∫", "∬", "∮") for a in line):
                line.append(_Atom(" ", "space"))  # the d of dx ends the integrand
            line.append(_Atom(text, kind))
        for at in bars:  # a bar without a partner separates: p(x|y)
            line[at] = _Atom(line[at].text, "ord")
        return line

    def join(self, atoms: list[_Atom]) -> str:
        out, before, pause = "", _NONE, ""
        for atom in self.settle(atoms):
            if atom.kind == "space":
                pause = max(pause, atom.text)
                continue
            pause = "" if self.tight or before.kind == "open" or atom.kind in ("close", "punct") else pause
            text = (pause or self.gap(before, atom)) + atom.text
            out += text.lstrip() if out[-1:] in ("", " ") else text
            out += " " if atom.kind == "punct" and not self.tight else ""
            before, pause = atom, ""
        return out.rstrip()

    def gap(self, before: _Atom, atom: _Atom) -> str:
        a, b = before.kind, atom.kind
        if a in ("none", "open", "punct", "slash") or b in ("close", "punct", "slash", "post"):
            return ""
        if a in ("rel", "bin") or b in ("rel", "bin"):
            return "" if self.tight and "mod" not in (before.text, atom.text) else " "
        if "text" in (a, b):
            return "" if before.text[-1:] == " " or atom.text[:1] in " ,.;:)-" else " "
        if a == "diff" or b in ("fn", "word", "op", "quant"):
            return "" if a == "pre" and before.text[0] not in "∂∇" else " "
        if a in ("fn", "word", "op"):
            applied = b in ("fence", "open") and atom.text[0] not in "|‖" and (a != "op" or before.text.isalpha())
            return "" if applied else " "
        if (before.text[:1] in ("√", "∛") and before.text[-1] != ")") or (b == "frac" and atom.text[0] == "∂"):
            return " "
        scripted = re.search(r"[_^](\([^()]*\)|\[.*\]|[^\s()\[\]]*)$", before.text) and before.text[-1] != "⊤"
        return " " if scripted and (atom.text[:1].isalnum() or atom.text[:1] in ("√", "∂", "∇")) else ""


def _ascii_line(line: str) -> str:
    """The same line in ASCII: x̂ᵢ² as x_hat_i^2."""
    line = "".join(unicodedata.normalize("NFD", c) if c.isalpha() else c for c in line)
    line = re.sub(rf"([√∛∜])(?!\()(\w[{''.join(_ACCENTS.values())}]?[{_LOWERED}]*)", r"\1(\2)", line)
    out = last = ""
    for piece in re.findall(rf"[{_LOWERED}]+(?:,[{_LOWERED}]+)*|[{_RAISED}]+|.", line):
        text = "".join(_PLAIN.get(c) or unicodedata.normalize("NFKD", c) for c in piece)
        if piece[0] in _LOWERED + _RAISED:
            text = "".join(_PLAIN.get(c, c) for c in text)
            text = ("_" if piece[0] in _LOWERED else "^") + (text if len(text) == 1 else f"{{{text}}}")
        apart = (out[-1:].isalnum() or out[-1:] == "}") and text[:1].isalnum() and len(last + text) > 2
        out, last = out + " " * apart + text, text
    return out.encode("ascii", "replace").decode()
