/* Sums over the entries of rows, inner products of entries, largest entries, and attention over the entries of rows.
 *
 * Row r of a pattern holds the columns columns[pointers[r] .. pointers[r + 1]); entries[k] is the place of entry k in
 * the list, in which weights and results of single entries stand. Within a row sums are taken in order, so that any
 * number of threads gives the same bits. Features are taken in blocks that stay in registers.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef int64_t i64;
typedef REAL real;
/* Features at a time, heads at a time; entries whose rows are asked of memory before they are needed. */
enum { BLOCK = 64, HEADS = 8, AHEAD = 4 };
/* Numbers of heads and widths for which loops are unrolled; others take the loop as it stands. */
#define USUAL CASE(8, 8) CASE(4, 16) CASE(2, 32) CASE(1, 64) CASE(1, 32) CASE(1, 16) CASE(1, 8)
/* Whether sums of so many heads and features stay in registers; a constant where both are. */
#define IN_REGISTERS(N, WIDTH) ((WIDTH) % HEADS == 0 && (N) * (WIDTH) <= BLOCK)
#define INLINE static inline __attribute__((always_inline))

static void ask(const real *x, i64 features) {
    for (i64 f = 0; f < features; f += 64 / (i64)sizeof(real)) __builtin_prefetch(x + f);
}

/* y[r] = sum of weights[entries[k]] * x[columns[k]] over a block of features. */
#define ADD_UP(WIDTH)                                                                         \
    {                                                                                         \
        real sum[BLOCK] = {0};                                                                \
        for (i64 k = first; k < last; k++) {                                                  \
            if (k + AHEAD < end) ask(x + columns[k + AHEAD] * features + from, WIDTH);        \
            const real *row = x + columns[k] * features + from;                               \
            const real w = weights ? weights[entries[k]] : 1;                                 \
            for (i64 f = 0; f < (WIDTH); f++) sum[f] += w * row[f];                           \
        }                                                                                     \
        memcpy(y + r * features + from, sum, sizeof(real) * (size_t)(WIDTH));                 \
    }

void row_sums(const real *x, const real *weights, const i64 *pointers, const i64 *columns, const i64 *entries,
              i64 features, real *y, i64 first_row, i64 last_row) {
    const i64 end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++) {
        const i64 first = pointers[r], last = pointers[r + 1];
        i64 from = 0;
        for (; from + BLOCK <= features; from += BLOCK) ADD_UP(BLOCK)
        for (; from + 16 <= features; from += 16) ADD_UP(16)
        if (from < features) ADD_UP(features - from)
    }
}

static real dot(const real *a, const real *b, i64 length) {
    real part[16] = {0}, few = 0;
    if (length < 16) {
        for (i64 f = 0; f < length; f++) few += a[f] * b[f];
        return few;
    }
    i64 f = 0;
    for (; f + 16 <= length; f += 16)
        for (i64 i = 0; i < 16; i++) part[i] += a[f + i] * b[f + i];
    for (i64 i = 0; f < length; f++, i++) part[i] += a[f] * b[f];
    for (i64 step = 8; step; step /= 2)
        for (i64 i = 0; i < step; i++) part[i] += part[i + step];
    return part[0];
}

/* d[entries[k]] = <a[r], b[columns[k]]> */
void entry_dots(const real *a, const real *b, const i64 *pointers, const i64 *columns, const i64 *entries, i64 features,
                real *d, i64 first_row, i64 last_row) {
    const i64 end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++)
        for (i64 k = pointers[r]; k < pointers[r + 1]; k++) {
            if (k + AHEAD < end) ask(b + columns[k + AHEAD] * features, features);
            d[entries[k]] = dot(a + r * features, b + columns[k] * features, features);
        }
}

/* at[r, f] = the column of the largest sign * x[column, f] in the row, the first of equals; -1 where it has none.
 * What is not a number is larger than all. */
void row_extremes(const real *x, real sign, const i64 *pointers, const i64 *columns, const i64 *entries, i64 features,
                  i64 *at, i64 first_row, i64 last_row) {
    (void)entries;
    const i64 end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++)
        for (i64 from = 0; from < features; from += 16) {
            const i64 width = features - from < 16 ? features - from : 16;
            real best[16];
            i64 where[16];
            for (i64 f = 0; f < 16; f++) best[f] = -INFINITY, where[f] = -1;
            for (i64 k = pointers[r]; k < pointers[r + 1]; k++) {
                const i64 c = columns[k];
                const real *row = x + c * features + from;
                if (k + AHEAD < end) ask(x + columns[k + AHEAD] * features + from, width);
                for (i64 f = 0; f < width; f++) {
                    const real value = sign * row[f];
                    const int better = value > best[f] || where[f] < 0 || (value != value && best[f] == best[f]);
                    best[f] = better ? value : best[f];
                    where[f] = better ? c : where[f];
                }
            }
            memcpy(at + r * features + from, where, sizeof(i64) * (size_t)width);
        }
}

/* --- Attention of row r to its columns c, for each head: score leaky(to[r] + from[c] + more[e]), softmax over the row
 *     from `top`, the highest score, and one over the sum of exp(score - top). Heads lie side by side and are computed
 *     so; their number and width are constants in the usual sizes. --- */

#ifdef SINGLE
typedef int32_t whole;
enum { MANTISSA = 23, BIAS = 127, DEGREE = 7 };
static const real ROUNDER = 0x1.8p23f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f, LOWEST = -87.0f;
#else
typedef int64_t whole;
enum { MANTISSA = 52, BIAS = 1023, DEGREE = 13 };
static const real ROUNDER = 0x1.8p52, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 1.9082149292705877e-10, LOWEST = -708.0;
#endif
static const double TAYLOR[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                                1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};

/* One number for each of HEADS heads. */
typedef real Lanes __attribute__((vector_size(sizeof(real) * HEADS)));
typedef whole Bits __attribute__((vector_size(sizeof(real) * HEADS)));

INLINE Lanes load(const real *x, i64 n) {
    Lanes v;
    if (n < HEADS) /* one by one: what was just written in parts is slow to read as a whole */
        return (Lanes){x[0], n > 1 ? x[1] : 0, n > 2 ? x[2] : 0, n > 3 ? x[3] : 0,
                       n > 4 ? x[4] : 0, n > 5 ? x[5] : 0, n > 6 ? x[6] : 0, 0};
    memcpy(&v, x, sizeof v);
    return v;
}

INLINE void store(real *x, Lanes v, i64 n) {
    if (n == HEADS) memcpy(x, &v, sizeof v);
    else
        for (i64 i = 0; i < n; i++) x[i] = v[i];
}

INLINE Lanes choose(Bits mask, Lanes yes, Lanes no) { return (Lanes)((mask & (Bits)yes) | (~mask & (Bits)no)); }

/* exp of what is not above zero, by a power of two and a polynomial, to 2 ulps. What is below the smallest normal
 * number is zero; NaN passes. */
INLINE Lanes exponential(Lanes z) {
    const Lanes t = z * (real)1.4426950408889634 + ROUNDER; /* its lowest bits are a whole number */
    const Lanes n = t - ROUNDER, r = (z - n * LN2_HIGH) - n * LN2_LOW, zero = {0};
    Lanes p = zero + (real)TAYLOR[DEGREE];
    for (int i = DEGREE - 1; i >= 0; i--) p = p * r + (real)TAYLOR[i];
    const Bits scale = (Bits)(t + (real)BIAS) << MANTISSA; /* 2^n */
    return choose(z < LOWEST, zero, p * (Lanes)scale);
}

/* Sums of neighbours: first those of a, then those of b. */
INLINE Lanes pairs(Lanes a, Lanes b) {
    const Bits even = {0, 2, 4, 6, 8, 10, 12, 14}, odd = {1, 3, 5, 7, 9, 11, 13, 15};
    return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
}

/* The inner product of each of n heads. */
INLINE Lanes dots(const real *a, const real *b, i64 n, i64 width) {
    Lanes of[HEADS] = {0};
    if (width % HEADS) {
        real each[HEADS];
        for (i64 i = 0; i < n; i++) each[i] = dot(a + i * width, b + i * width, width);
        return load(each, n);
    }
    for (i64 i = 0; i < n; i++)
        for (i64 f = i * width; f < (i + 1) * width; f += HEADS) of[i] += load(a + f, HEADS) * load(b + f, HEADS);
    return pairs(pairs(pairs(of[0], of[1]), pairs(of[2], of[3])), pairs(pairs(of[4], of[5]), pairs(of[6], of[7])));
}

/* Room for the sums of a row that stays in registers where it is of constant size. */
typedef struct { Lanes part[BLOCK / HEADS]; } Sums;

/* out += share * x for each of n heads: in `sums` if all fits there, else in memory. */
INLINE void add(Sums *sums, real *out, Lanes shares, const real *x, i64 n, i64 width) {
    real share[HEADS];
    store(share, shares, HEADS);
    for (i64 i = 0; i < n; i++)
        if (IN_REGISTERS(n, width))
            for (i64 f = 0; f < width / HEADS; f++)
                sums->part[i * (width / HEADS) + f] += share[i] * load(x + i * width + f * HEADS, HEADS);
        else
            for (i64 f = i * width; f < (i + 1) * width; f++) out[f] += share[i] * x[f];
}

/* out = factor * the sums, for each of n heads. */
INLINE void scale(const Sums *sums, real *out, Lanes factor, i64 n, i64 width) {
    for (i64 i = 0; i < n; i++)
        if (IN_REGISTERS(n, width))
            for (i64 f = 0; f < width / HEADS; f++)
                store(out + i * width + f * HEADS, factor[i] * sums->part[i * (width / HEADS) + f], HEADS);
        else
            for (i64 f = i * width; f < (i + 1) * width; f++) out[f] *= factor[i];
}

/* What the calls share: scores, their pattern, and sizes. */
typedef struct {
    const real *to, *from, *more, *values;
    real slope;
    const i64 *pointers, *columns, *entries;
    i64 heads, width;
} Attention;

/* Heads h .. h + n of one row: highest scores, then shares and sums. The shares are divided once, at the end. */
INLINE void attend_heads(const Attention *a, i64 r, i64 end, i64 h, i64 n, i64 width, real *top, real *inverse,
                         real *out) {
    const i64 first = a->pointers[r], last = a->pointers[r + 1], heads = a->heads, features = heads * a->width;
    const Lanes zero = {0}, own = load(a->to + r * heads + h, n), slope = zero + a->slope;
    Lanes high = zero - INFINITY, total = zero;
    Sums sums = {0};
    memset(out, 0, sizeof(real) * (size_t)(n * width));
    for (int pass = 0; pass < 2; pass++)
        for (i64 k = first; k < last; k++) {
            const i64 c = a->columns[k];
            Lanes s = own + load(a->from + c * heads + h, n);
            if (a->more) s += load(a->more + a->entries[k] * heads + h, n);
            s = choose(s > 0, s, s * slope);
            if (pass == 0) {
                high = choose(s > high, s, high);
                continue;
            }
            if (k + AHEAD < end) ask(a->values + a->columns[k + AHEAD] * features + h * width, n * width);
            s = exponential(s - high);
            total += s;
            add(&sums, out, s, a->values + c * features + h * width, n, width);
        }
    total = first < last ? 1 / total : zero;
    store(top, first < last ? high : zero, n);
    store(inverse, total, n);
    scale(&sums, out, total, n, width);
}

/* y[r, head] = sum of shares * values[c, head]; softmax: (rows, 2, heads), `top` and `inverse` of each row. */
void attend(const real *to, const real *from, const real *more, const real *values, real slope, const i64 *pointers,
            const i64 *columns, const i64 *entries, i64 heads, i64 width, real *softmax, real *y, i64 first_row,
            i64 last_row) {
    const Attention a = {to, from, more, values, slope, pointers, columns, entries, heads, width};
    const i64 end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++)
        for (i64 h = 0; h < heads; h += HEADS) {
            const i64 n = heads - h < HEADS ? heads - h : HEADS;
            real *top = softmax + 2 * r * heads + h, *inverse = top + heads, *out = y + (r * heads + h) * width;
#define CASE(N, WIDTH) if (n == N && width == WIDTH) attend_heads(&a, r, end, h, N, WIDTH, top, inverse, out); else
            USUAL attend_heads(&a, r, end, h, n, width, top, inverse, out);
#undef CASE
        }
}

/* Gradients by columns: the pattern is the transposed one, and what belongs to a row stands together in `rows`:
 * (rows, 4, heads), to, top, inverse and mean = <grad, y>. The share of an entry is found again instead of being kept.
 * d[e] = share * (<grad, value> - mean) * slope of leaky; d_from sums it, d_values sums share * grad. */
INLINE void pull_heads(const Attention *a, const real *grad, const real *rows, i64 c, i64 end, i64 h, i64 n, i64 width,
                       real *d, real *d_from, real *d_values) {
    const i64 heads = a->heads, features = heads * a->width;
    const Lanes zero = {0}, one = zero + 1, slope = zero + a->slope, own = load(a->from + c * heads + h, n);
    const real *value = a->values + c * features + h * width;
    Lanes sum = zero;
    Sums sums = {0};
    memset(d_values, 0, sizeof(real) * (size_t)(n * width));
    for (i64 k = a->pointers[c]; k < a->pointers[c + 1]; k++) {
        const real *g = grad + a->columns[k] * features + h * width, *row = rows + a->columns[k] * 4 * heads + h;
        const i64 e = a->entries[k] * heads + h;
        if (k + AHEAD < end) {
            ask(grad + a->columns[k + AHEAD] * features + h * width, n * width);
            ask(rows + a->columns[k + AHEAD] * 4 * heads, 4 * heads);
        }
        Lanes s = load(row, n) + own;
        if (a->more) s += load(a->more + e, n);
        const Lanes slant = choose(s > 0, one, slope);
        const Lanes share = exponential(s * slant - load(row + heads, n)) * load(row + 2 * heads, n);
        const Lanes pulled = share * (dots(g, value, n, width) - load(row + 3 * heads, n)) * slant;
        store(d + e, pulled, n);
        sum += pulled;
        add(&sums, d_values, share, g, n, width);
    }
    store(d_from, sum, n);
    scale(&sums, d_values, one, n, width);
}

void attend_back(const real *grad, const real *rows, const real *from, const real *more, const real *values, real slope,
                 const i64 *pointers, const i64 *columns, const i64 *entries, i64 heads, i64 width, real *d,
                 real *d_from, real *d_values, i64 first_row, i64 last_row) {
    const Attention a = {0, from, more, values, slope, pointers, columns, entries, heads, width};
    const i64 end = pointers[last_row];
    for (i64 c = first_row; c < last_row; c++)
        for (i64 h = 0; h < heads; h += HEADS) {
            const i64 n = heads - h < HEADS ? heads - h : HEADS;
            real *df = d_from + c * heads + h, *dv = d_values + (c * heads + h) * width;
#define CASE(N, WIDTH) if (n == N && width == WIDTH) pull_heads(&a, grad, rows, c, end, h, N, WIDTH, d, df, dv); else
            USUAL pull_heads(&a, grad, rows, c, end, h, n, width, d, df, dv);
#undef CASE
        }
}

/* Two rows, the second empty, features enough for every kind of block. */
int self_test(void) {
    enum { FEATURES = BLOCK + 16 + 3 };
    static real x[3 * FEATURES], y[2 * FEATURES], back[3 * FEATURES];
    static i64 at[2 * FEATURES];
    const i64 pointers[] = {0, 2, 2}, columns[] = {2, 0}, entries[] = {1, 0};
    const i64 t_pointers[] = {0, 1, 1, 2}, t_columns[] = {0, 0}, t_entries[] = {0, 1};
    const real weights[] = {4, 2}, to[] = {0, 0}, from[] = {0, 0, 0}, rows[] = {0, 0, (real)0.5, FEATURES, 0, 0, 0, 0};
    real d[2], softmax[4], d_from[3];
    for (i64 i = 0; i < 3 * FEATURES; i++) x[i] = (real)(i / FEATURES + 1);
    int wrong = 0;
    row_sums(x, weights, pointers, columns, entries, FEATURES, y, 0, 2);
    for (i64 f = 0; f < FEATURES; f++) wrong += y[f] != 2 * 3 + 4 * 1 || y[FEATURES + f] != 0;
    entry_dots(x, x, pointers, columns, entries, FEATURES, d, 0, 2);
    wrong += d[0] != FEATURES || d[1] != 3 * FEATURES;
    row_extremes(x, -1, pointers, columns, entries, FEATURES, at, 0, 2);
    for (i64 f = 0; f < FEATURES; f++) wrong += at[f] != 0 || at[FEATURES + f] != -1;
    attend(to, from, 0, x, (real)0.2, pointers, columns, entries, 1, FEATURES, softmax, y, 0, 2);
    for (i64 f = 0; f < FEATURES; f++) wrong += y[f] != 2 || y[FEATURES + f] != 0;
    wrong += softmax[0] != 0 || softmax[1] != (real)0.5;
    attend_back(x, rows, from, 0, x, 1, t_pointers, t_columns, t_entries, 1, FEATURES, d, d_from, back, 0, 3);
    wrong += d[0] != 0 || d[1] != FEATURES || d_from[0] != 0 || d_from[1] != 0 || d_from[2] != FEATURES;
    return wrong;
}
