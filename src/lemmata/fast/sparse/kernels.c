/* Sums over the entries of rows, inner products of entries, and attention over the entries of rows.
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
enum { BLOCK = 64, AHEAD = 4 }; /* features at a time; entries whose rows are asked of memory before they are needed */

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
    real part[16] = {0};
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

/* Attention of row r to its columns c, for each head: score leaky(to[r] + from[c] + more[e]), softmax over the row.
 * Writes the shares q of all entries and, with values, their sums y[r, head] = sum of q * values[c, head]. */
void attend(const real *to, const real *from, const real *more, const real *values, real slope, const i64 *pointers,
            const i64 *columns, const i64 *entries, i64 heads, i64 width, real *q, real *y, i64 first_row,
            i64 last_row) {
    const i64 features = heads * width, end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++) {
        const i64 first = pointers[r], last = pointers[r + 1];
        real *out = y + r * features;
        memset(out, 0, sizeof(real) * (size_t)features);
        for (i64 h = 0; h < heads; h++) {
            real highest = -INFINITY, total = 0;
            for (i64 k = first; k < last; k++) {
                real s = to[r * heads + h] + from[columns[k] * heads + h];
                if (more) s += more[entries[k] * heads + h];
                s = s > 0 ? s : s * slope;
                q[entries[k] * heads + h] = s;
                highest = s > highest || s != s ? s : highest;
            }
            for (i64 k = first; k < last; k++) {
                real *own = q + entries[k] * heads + h;
                *own = EXP(*own - highest);
                total += *own;
            }
            for (i64 k = first; k < last; k++) q[entries[k] * heads + h] /= total;
        }
        for (i64 k = first; k < last; k++) {
            if (k + AHEAD < end) ask(values + columns[k + AHEAD] * features, features);
            const real *row = values + columns[k] * features, *own = q + entries[k] * heads;
            for (i64 h = 0; h < heads; h++)
                for (i64 f = 0; f < width; f++) out[h * width + f] += own[h] * row[h * width + f];
        }
    }
}

/* Gradients of the scores: d[e] = q * (<grad, value> - <grad, y>) * slope of leaky, summed over the row for `to`. */
void attend_back_rows(const real *to, const real *from, const real *more, const real *values, real slope,
                      const i64 *pointers, const i64 *columns, const i64 *entries, i64 heads, i64 width, const real *q,
                      const real *y, const real *grad, real *d, real *d_to, i64 first_row, i64 last_row) {
    const i64 features = heads * width, end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++)
        for (i64 h = 0; h < heads; h++) {
            const real *g = grad + r * features + h * width;
            const real mean = dot(g, y + r * features + h * width, width);
            real sum = 0;
            for (i64 k = pointers[r]; k < pointers[r + 1]; k++) {
                const i64 c = columns[k], e = entries[k] * heads + h;
                if (h == 0 && k + AHEAD < end) ask(values + columns[k + AHEAD] * features, features);
                real s = to[r * heads + h] + from[c * heads + h];
                if (more) s += more[e];
                d[e] = q[e] * (dot(g, values + c * features + h * width, width) - mean) * (s > 0 ? 1 : slope);
                sum += d[e];
            }
            d_to[r * heads + h] = sum;
        }
}

/* By columns: the gradients of values, sum of q * grad, and of `from`, sum of d; the pattern is the transposed one. */
void attend_back_columns(const real *q, const real *d, const real *grad, const i64 *pointers, const i64 *columns,
                         const i64 *entries, i64 heads, i64 width, real *d_values, real *d_from, i64 first_row,
                         i64 last_row) {
    const i64 features = heads * width, end = pointers[last_row];
    for (i64 r = first_row; r < last_row; r++) {
        real *out = d_values + r * features, *sum = d_from + r * heads;
        memset(out, 0, sizeof(real) * (size_t)features);
        memset(sum, 0, sizeof(real) * (size_t)heads);
        for (i64 k = pointers[r]; k < pointers[r + 1]; k++) {
            if (k + AHEAD < end) ask(grad + columns[k + AHEAD] * features, features);
            const real *row = grad + columns[k] * features, *share = q + entries[k] * heads;
            for (i64 h = 0; h < heads; h++) {
                sum[h] += d[entries[k] * heads + h];
                for (i64 f = 0; f < width; f++) out[h * width + f] += share[h] * row[h * width + f];
            }
        }
    }
}

/* Two rows, the second empty, features enough for every kind of block. */
int self_test(void) {
    enum { FEATURES = BLOCK + 16 + 3 };
    static real x[3 * FEATURES], y[2 * FEATURES];
    const i64 pointers[] = {0, 2, 2}, columns[] = {2, 0}, entries[] = {1, 0};
    const real weights[] = {4, 2};
    real d[2], q[2], to[] = {0, 0}, from[] = {0, 0, 0};
    for (i64 i = 0; i < 3 * FEATURES; i++) x[i] = (real)(i / FEATURES + 1);
    int wrong = 0;
    row_sums(x, weights, pointers, columns, entries, FEATURES, y, 0, 2);
    for (i64 f = 0; f < FEATURES; f++) wrong += y[f] != 2 * 3 + 4 * 1 || y[FEATURES + f] != 0;
    entry_dots(x, x, pointers, columns, entries, FEATURES, d, 0, 2);
    wrong += d[0] != FEATURES || d[1] != 3 * FEATURES;
    attend(to, from, 0, x, (real)0.2, pointers, columns, entries, 1, FEATURES, q, y, 0, 2);
    for (i64 f = 0; f < FEATURES; f++) wrong += y[f] != 2 || y[FEATURES + f] != 0;
    return wrong;
}
