"""Formulas in the terminal: golden lines of every chapter, and what must hold for any formula whatever."""

import random
import time
from pathlib import Path

import pytest
import yaml

import lemmata
from cases import for_each
from lemmata.catalog.unicode_math import unicode_math

STATEMENTS = yaml.safe_load((Path(lemmata.__file__).parent / "connectionism" / "statements.yaml").read_text("utf-8"))
TEXTS = [entry["statement"] for entry in STATEMENTS]
TEXTS += [
    erratum[key]
    for entry in STATEMENTS
    for erratum in entry.get("errata", ())
    for key in ("printed", "problem", "correct")
]

SET = [
    # foundations
    (r"\|x\|_\infty=\lim_{p\to\infty}\|x\|_p", "‖x‖_∞ = lim_(p→∞) ‖x‖ₚ"),
    (r"\mathrm{Tr}A=\sum_i\lambda_i", "Tr A = ∑ᵢ λᵢ"),
    (
        r"D_{KL}(p_1\|p_2)=\frac12\left[\log\frac{|\Sigma_2|}{|\Sigma_1|}-d"
        r"+\mathrm{tr}(\Sigma_2^{-1}\Sigma_1)+(\mu_2-\mu_1)^\top\Sigma_2^{-1}(\mu_2-\mu_1)\right]",
        "D_KL(p₁‖p₂) = ½[log(|Σ₂|/|Σ₁|) − d + tr(Σ₂⁻¹Σ₁) + (μ₂ − μ₁)⊤Σ₂⁻¹(μ₂ − μ₁)]",
    ),
    (r"e^{\lambda(e^t-1)}", "e^[λ(eᵗ−1)]"),
    (r"\tanh'(z)=1-\tanh^2(z)", "tanh′(z) = 1 − tanh²(z)"),
    (r"\int_{x_0}^x\frac{f^{(n+1)}(t)}{n!}(x-t)^ndt", "∫_(x₀)ˣ (f⁽ⁿ⁺¹⁾(t)/n!)(x − t)ⁿ dt"),
    (r"\pi=\begin{pmatrix}1&\cdots&n\\\pi(1)&\cdots&\pi(n)\end{pmatrix}", "π = (1 ⋯ n; π(1) ⋯ π(n))"),
    (r"\mathbb P(X\ge t)\le\frac{\mathbb E[X]}t", "ℙ(X ≥ t) ≤ 𝔼[X]/t"),
    (r"\frac{\partial^2\mathcal L}{\partial w_i\partial w_j}", "∂²ℒ/∂wᵢ∂wⱼ"),
    (r"\mathbb R^{r_1\times\dots\times r_a}", "ℝ^(r₁×…×rₐ)"),
    # connectionism
    (r"f[\sigma,\theta](x)=\mathbb 1\{\sigma^\top x\ge\theta\}", "f[σ,θ](x) = 𝟙{σ⊤x ≥ θ}"),
    (r"\gamma[w,b](x,y)=\frac{y(w^\top x+b)}{\|w\|}", "γ[w,b](x,y) = y(w⊤x + b)/‖w‖"),
    (r"\gamma[w,b](S)=\min_{(x,y)\in S}\gamma[w,b](x,y)", "γ[w,b](S) = min_[(x,y)∈S] γ[w,b](x,y)"),
    (r"\mathcal V(S)=\{(w,b):\gamma[w,b](S)>0\}\subseteq\mathbb R^{n+1}", "𝒱(S) = {(w,b) : γ[w,b](S) > 0} ⊆ ℝⁿ⁺¹"),
    (r"1\ge\cos\angle(w,w_t)\ge\sqrt t\,\gamma/R", "1 ≥ cos ∠(w,wₜ) ≥ √t γ/R"),
    (r"C(s+1,n)=2\sum_{i=0}^{n-1}\binom si", "C(s + 1, n) = 2 ∑ᵢ₌₀ⁿ⁻¹ (s choose i)"),
    (r"H(x)=-\frac12\sum_{i,j}w_{ij}x_ix_j+\sum_ib_ix_i", "H(x) = −½ ∑ᵢ,ⱼ wᵢⱼxᵢxⱼ + ∑ᵢ bᵢxᵢ"),
    (r"W=\frac1n\left(\sum_tx_tx_t^\top-sI\right)", "W = (1/n)(∑ₜ xₜxₜ⊤ − sI)"),
    (
        r"\sqrt{\frac n{2\pi s}}\int_1^\infty e^{-nz^2/(2s)}dz=\frac12\left(1-\mathrm{erf}\sqrt{n/(2s)}\right)",
        "√(n/(2πs)) ∫₁^∞ e^[−nz²/(2s)] dz = ½(1 − erf √(n/(2s)))",
    ),
    (
        r"\mathrm{sgn}(z)=\begin{cases}+1&z>0\\0&z=0\\-1&\text{otherwise}\end{cases}",
        "sgn(z) = {+1 if z > 0; 0 if z = 0; −1 otherwise}",
    ),
    (r"w\stackrel{!}{=}0", "w =^! 0"),
    # feedforward
    (r"\mathrm{softmax}(x)_i=\frac{e^{x_i}}{\sum_je^{x_j}}", "softmax(x)ᵢ = e^(xᵢ)/(∑ⱼ e^(xⱼ))"),
    (
        r"-\log p(S\mid\theta)=\frac1{2\sigma^2}\|y-f[\theta]\|^2+\frac s2\log(2\pi\sigma^2)",
        "−log p(S | θ) = (1/(2σ²))‖y − f[θ]‖² + (s/2) log(2πσ²)",
    ),
    (r"R(m,L)\ge R(m)\left\lfloor\frac mn\right\rfloor^{n(L-1)}", "R(m,L) ≥ R(m)⌊m/n⌋ⁿ⁽ᴸ⁻¹⁾"),
    (r"2\lceil\log_2N\rceil", "2⌈log₂ N⌉"),
    (r"w^*=(X^\top X)^{-1}X^\top y", "w* = (X⊤X)⁻¹X⊤y"),
    # optimisation
    (r"\frac{\partial h}{\partial w_{ij}^l}=\delta_i^l\dot\phi_i^lx_j^{l-1}", "∂h/∂wᵢⱼˡ = δᵢˡϕ̇ᵢˡxⱼˡ⁻¹"),
    (r"\min_{t<T}\|\nabla h(\theta_t)\|^2\le\frac{2L}{T}(h(\theta_0)-h^*)", "min_(t<T) ‖∇h(θₜ)‖² ≤ (2L/T)(h(θ₀) − h*)"),
    (r"\tfrac{d}{dt}h=-\|\nabla h\|^2", "d/dt h = −‖∇h‖²"),
    (r"\theta_{t+1}=\theta_t-\frac{\eta}{\sqrt{\hat v_t}+\epsilon}\odot\hat m_t", "θₜ₊₁ = θₜ − η/(√v̂ₜ + ϵ) ⊙ m̂ₜ"),
    (r"\left(1-\frac\mu L\right)^k", "(1 − μ/L)ᵏ"),
    (r"\alpha_t=1/\sqrt[3]t", "αₜ = 1/∛t"),
    # tricks
    (r"\mathrm{Var}[(Wx)_i]=n\sigma^2\gamma^2", "Var[(Wx)ᵢ] = nσ²γ²"),
    (r"\theta\sim\mathrm{Unif}[-\sqrt3\,\sigma,\sqrt3\,\sigma]", "θ ∼ Unif[−√3 σ, √3 σ]"),
    (r"\Pi=(1-\epsilon)I+\frac\epsilon k\mathbf 1\mathbf 1^\top", "Π = (1 − ϵ)I + (ϵ/k)11⊤"),
    # theory
    (r"k[\theta_0](x,\xi)\xrightarrow{P}k_\infty(x,\xi)", "k[θ₀](x,ξ) —P→ k_∞(x,ξ)"),
    (
        r"\alpha(\theta'|\theta)=\min\left\{1,\frac{p(\theta'|S)}{p(\theta|S)}\right\}",
        "α(θ′|θ) = min{1,p(θ′|S)/p(θ|S)}",
    ),
    (
        r"\mathbb E_q[\ell]\le\mathbb E_q[\hat\ell]"
        r"+\sqrt{\frac1{2n}\left(D_{KL}(q\|p)+\log\frac{2\sqrt n}\epsilon\right)}",
        "𝔼_q[ℓ] ≤ 𝔼_q[ℓ̂] + √((1/(2n))(D_KL(q‖p) + log(2√n/ϵ)))",
    ),
    (
        r"\underbrace{\inf_{\mathcal F_\delta}R-\inf_{\mathcal F}R}_{\text{approximation}}",
        "(inf_(ℱ_δ) R − inf_ℱ R)_approximation",
    ),
    # convolution
    (r"(f*h)(u)=\int h(u-t)f(t)dt", "(f * h)(u) = ∫ h(u − t)f(t) dt"),
    (r"\mathrm{DFT}(\mathrm{DFT}(f))[u]=n\,f[-u\bmod n]", "DFT(DFT(f))[u] = n f[−u mod n]"),
    (r"\mathcal F(f*g)=\mathcal F(f)\cdot\mathcal F(g)", "ℱ(f * g) = ℱ(f) · ℱ(g)"),
    (r"\left\lfloor\frac{x+2p-d(k-1)-1}s\right\rfloor+1", "⌊(x + 2p − d(k − 1) − 1)/s⌋ + 1"),
    (r"\mathcal I_i^\ell=\{j\mid W^\ell_{ij}\ne0\}", "ℐᵢˡ = {j | Wᵢⱼˡ ≠ 0}"),
    # recurrent
    (
        r"z_t=\sigma(F\tilde x_t)\odot z_{t-1}+\sigma(G\tilde x_t)\odot\tanh(V\tilde x_t)",
        "zₜ = σ(Fx̃ₜ) ⊙ zₜ₋₁ + σ(Gx̃ₜ) ⊙ tanh(Vx̃ₜ)",
    ),
    (
        r"\frac{\partial L}{\partial U}=\sum_t\frac{\partial L}{\partial z_t}\frac{\partial^+z_t}{\partial U}",
        "∂L/∂U = ∑ₜ (∂L/∂zₜ)(∂⁺zₜ/∂U)",
    ),
    (r"\lambda_i=\exp(-e^{\nu_i}+i\phi_i)", "λᵢ = exp(−e^(νᵢ) + iϕᵢ)"),
    (
        r"p(y_{1:n}\mid x_{1:m})=\prod_{i=1}^np(y_i\mid y_{1:i-1},x_{1:m})",
        "p(y_(1:n) | x_(1:m)) = ∏ᵢ₌₁ⁿ p(yᵢ | y_(1:i−1), x_(1:m))",
    ),
    # transformers
    (r"\Xi=\mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "Ξ = softmax(QK⊤/√dₖ)V"),
    (r"\omega_k=C^{-2\lfloor k/2\rfloor/d}", "ωₖ = C^(−2⌊k/2⌋/d)"),
    # geometric
    (r"x_m'=\phi\big(x_m,\bigoplus_{x\in X_m}\psi(x)\big)", "xₘ′ = ϕ(xₘ, ⨁_(x∈Xₘ) ψ(x))"),
    (r"\hat A=\tilde D^{-1/2}(A+I)\tilde D^{-1/2}", "Â = D̃^(−1/2)(A + I)D̃^(−1/2)"),
    (r"f:\bigcup_MR^M\to\mathcal Y", "f: ⋃_M Rᴹ → 𝒴"),
    # generative
    (
        r"x_0=\frac1{\sqrt{\bar\alpha_t}}x_t-\frac{\sqrt{1-\bar\alpha_t}}{\sqrt{\bar\alpha_t}}\epsilon",
        "x₀ = (1/√ᾱₜ)xₜ − (√(1 − ᾱₜ)/√ᾱₜ)ϵ",
    ),
    (
        r"\min_G\max_DV(D,G)=\mathbb E_{x\sim p_{data}}[\log D(x)]+\mathbb E_{z\sim p_z}[\log(1-D(G(z)))]",
        "min_G max_D V(D,G) = 𝔼_(x∼p_data)[log D(x)] + 𝔼_(z∼p_z)[log(1 − D(G(z)))]",
    ),
    (r"p_X(x)=p_Z(f^{-1}(x))\,|\det J_{f^{-1}}(x)|", "p_X(x) = p_Z(f⁻¹(x)) |det J_(f⁻¹)(x)|"),
    (r"q(x_t|x_{t-1})=\mathcal N(\sqrt{1-\beta_t}\,x_{t-1},\beta_tI)", "q(xₜ|xₜ₋₁) = 𝒩(√(1 − βₜ) xₜ₋₁, βₜI)"),
    # robustness
    (r"\delta^*=-\frac{w^\top x+b}{\|w\|_2^2}w", "δ* = −((w⊤x + b)/‖w‖₂²)w"),
    (r"x'=x+\epsilon\,\mathrm{sign}(\nabla_x\mathcal L(f(x),y))", "x′ = x + ϵ sign(∇ₓℒ(f(x),y))"),
    (r"\nabla_\theta\max_{\delta\in\Delta}\ell(x+\delta,y;\theta)", "∇_θ max_(δ∈Δ) ℓ(x + δ, y; θ)"),
    # continual and meta
    (
        r"\hat L_B(\theta)=L_B(\theta)+\frac\lambda2\sum_iF_{ii}(\theta_i-\theta^*_{A,i})^2",
        "L̂_B(θ) = L_B(θ) + (λ/2) ∑ᵢ Fᵢᵢ(θᵢ − θ*_(A,i))²",
    ),
    (r"\phi\leftarrow\phi+\epsilon(\tilde\phi-\phi)", "ϕ ← ϕ + ϵ(ϕ̃ − ϕ)"),
    # vision
    (
        r"S_x=\begin{pmatrix}-1&0&1\\-2&0&2\\-1&0&1\end{pmatrix}=(1,2,1)^\top(-1,0,1)",
        "Sₓ = (−1 0 1; −2 0 2; −1 0 1) = (1,2,1)⊤(−1,0,1)",
    ),
    (
        r"\mathcal F[\tilde h](u,v)=\frac{\overline{\mathcal F[h]}}{|\mathcal F[h]|^2+\varepsilon}",
        "ℱ[h̃](u,v) = bar(ℱ[h])/(|ℱ[h]|² + ε)",
    ),
    (r"R_i\cap R_j=\emptyset\ (i\ne j)", "Rᵢ ∩ Rⱼ = ∅ (i ≠ j)"),
    (r"I=\bigcup_{i=1}^NR_i", "I = ⋃ᵢ₌₁ᴺ Rᵢ"),
    # general
    (r"|\ell''(x)|\le L", "|ℓ″(x)| ≤ L"),
    (
        r"\begin{aligned}\|w_{t+1}\|^2&=\|w_t+yx\|^2\\&\le\|w_t\|^2+R^2\end{aligned}",
        "‖wₜ₊₁‖² = ‖wₜ + yx‖² ≤ ‖wₜ‖² + R²",
    ),
    (r"\gamma^{-1}x^2e^{-x}", "γ⁻¹x²e^(−x)"),
    (r"\left.f\right|_{x=0}", "f|ₓ₌₀"),
    (r"\{\pm1\}^n", "{±1}ⁿ"),
    (r"x_{i_t}", "x_(iₜ)"),
    (r"\sigma_{\max}^2", "σ²_max"),
    (r"w_{ij}", "wᵢⱼ"),
    (r"a\not=b", "a ≠ b"),
    (r"\|\|x\|-\|y\|\|", "‖‖x‖ − ‖y‖‖"),
    (r"R_{emp}", "R_emp"),
]

PLAIN = [
    (r"\lfloor R^2/\gamma^2\rfloor", "floor(R^2/gamma^2)"),
    (r"w^\top w_t\ge t\gamma", "w^T w_t >= t gamma"),
    (r"C(s+1,n)=2\sum_{i=0}^{n-1}\binom si", "C(s + 1, n) = 2 sum_{i=0}^{n-1} (s choose i)"),
    (r"\hat x_i^2+\tilde\gamma", "x_hat_i^2 + gamma_tilde"),
    (r"\|w_t\|\le R\sqrt t", "||w_t|| <= R sqrt(t)"),
    (r"1/\sqrt{\bar\alpha_t}", "1/sqrt(alpha_bar_t)"),
    (r"\mathcal V(S)\subseteq\mathbb R^{n+1}", "V(S) subseteq R^{n+1}"),
    (r"x\in\{-1,+1\}^n", "x in {-1,+1}^n"),
    (r"\frac12\xi^\top\xi", "(1/2)xi^T xi"),
    (r"e^{-x}", "e^(-x)"),
    (r"\max_{x\in S}\|x\|", "max_(x in S) ||x||"),
    (r"\frac{\partial h}{\partial\theta_\ell}", "dh/d theta_l"),
    (r"\nabla_\theta f''(x)", "grad_theta f''(x)"),
    (r"S\Rightarrow T\iff U\ne\emptyset", "S => T <=> U != {}"),
    (r"I\xrightarrow{h}J", "I --h-> J"),
    (r"x_{t,i}C_{t,i}", "x_{t,i} C_{t,i}"),
]

SOUP = r"""\frac \sqrt [ ] { } ( ) ^ _ ' \hat \overset \begin{cases} \end{cases} \begin{pmatrix} \end{pmatrix} & / !
    \begin{aligned} \\ \left \right \right. . | \| \{ \} a 1 - + = , : := ~ # % \# \text{ab} \text \mathrm{Tr} \mathrm
    \sum \log \unknown d \int \binom \not \mathbb \xrightarrow \mid α ≤ \phantom \gamma \quad e \substack \top
    \lfloor \rceil \middle \begin \end \, x̂ é""".split()


@for_each(("formula", "line"), SET)
def test_a_formula_is_set_as_in_a_book(formula, line):
    assert unicode_math(f"${formula}$") == line


@for_each(("formula", "line"), PLAIN)
def test_a_formula_is_set_in_plain_ascii(formula, line):
    assert unicode_math(f"${formula}$", plain=True) == line


@pytest.mark.parametrize("plain", [False, True])
def test_no_latex_is_left_of_any_statement(plain):
    for text in TEXTS:
        line = unicode_math(text, plain)
        assert not set("\\$") & set(line), line
        assert line.count("{") == line.count("}"), line
        assert line.isascii() or not plain


def test_a_set_text_is_not_set_again():
    for text in TEXTS:
        line = unicode_math(text)
        assert unicode_math(line) == line


@pytest.mark.parametrize(
    "text",
    [
        "no formula at all",
        "It costs $5 and $10.",
        r"An escaped \$ and a command \alpha outside of a formula.",
        "one lone $ sign",
        "x_i^2 {braces} \\n stay",
        "",
    ],
)
def test_text_without_formulas_is_left_alone(text):
    assert unicode_math(text) == text
    assert unicode_math(text, plain=True) == text


def test_prose_around_formulas_stays_and_display_formulas_are_set_too():
    text = r"With  two spaces, $x_1$ and"
    assert (
        unicode_math(text + "\n$$ x^2 $$ (\u201csquare\u201d).") == "With  two spaces, x₁ and\nx² (\u201csquare\u201d)."
    )


def test_random_tokens_never_raise_and_leave_no_command_or_stray_brace():
    draw = random.Random(0)
    for _ in range(1500):
        tokens = draw.choices(SOUP, k=draw.randint(1, 30))
        formula = "".join(tokens)
        for plain in (False, True):
            line = unicode_math(f"${formula}x$", plain)
            assert not set("\\$") & set(line), formula
            assert line.isascii() or not plain, formula
            if not {r"\{", r"\}"} & set(tokens):
                assert line.count("{") == line.count("}"), formula


@pytest.mark.parametrize(
    "piece", ["{", "(", "|", r"\hat", r"\frac", r"\overset{a}{", "x_{", "^", r"\sqrt[", r"\begin{cases}"]
)
def test_deep_nesting_neither_raises_nor_hangs(piece):
    start = time.process_time()
    unicode_math(f"${piece * 2000}$")
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        (r"\frobnicate x", "frobnicate x"),
        (r"\frac{a}{b", "a/b"),
        (r"a}+b", "a + b"),
        (r"x^", "x"),
        (r"\sqrt", "√"),
        (r"(a+b", "(a + b"),
        (r"\text{a \% b}", "a % b"),
        (r"x≤y∈ℝ", "x ≤ y ∈ ℝ"),
    ],
)
def test_malformed_formulas_degrade_gracefully(formula, line):
    assert unicode_math(f"${formula}$") == line


def test_a_comma_within_a_number_has_no_space():
    assert unicode_math("$V=50{,}257$ of $(a,b)$") == "V = 50,257 of (a,b)"
