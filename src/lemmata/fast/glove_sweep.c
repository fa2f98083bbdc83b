/* One pass of AdaGrad over the entries of a table of co-occurrences, in batches.
 *
 * Within a batch all errors are taken at the same vectors; gradients of a row are added up, and then each row that was
 * met changes once: what a framework does with sparse gradients, without its calls. Sums are kept in LANES parts.
 */
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno") /* so that roots become vectors, too */
#endif

typedef int64_t i64;
typedef uint64_t u64;
#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

/* One register; a type that allows any address. */
typedef float Lanes __attribute__((vector_size(sizeof(float) * LANES), aligned(sizeof(float))));

/* One side of the table: vectors (vocabulary, dimensions) and constants (vocabulary), the squares of both; and working
 * space: the gradients (batch, dimensions) and (batch) of the rows that a batch has met, which they are, and the place of
 * each row among them, -1 for those that were not met. */
typedef struct {
    float *vectors, *bias, *vector_squares, *bias_squares, *slopes, *bias_slopes;
    i64 *rows, *places;
} Side;

static float dot(const float *x, const float *y, i64 dimensions) {
    Lanes part = {0};
    float sum = 0;
    i64 j = 0;
    for (; j + LANES <= dimensions; j += LANES) part += *(const Lanes *)(x + j) * *(const Lanes *)(y + j);
    for (; j < dimensions; j++) sum += x[j] * y[j];
    for (int lane = 0; lane < LANES; lane++) sum += part[lane];
    return sum;
}

/* z + g x in place of z. */
static void add(float *z, const float *x, float g, i64 dimensions) {
    i64 j = 0;
    for (; j + LANES <= dimensions; j += LANES) *(Lanes *)(z + j) += g * *(const Lanes *)(x + j);
    for (; j < dimensions; j++) z[j] += g * x[j];
}

/* The place of a row's gradient in this batch, which begins at zero. */
static i64 place_of(Side *side, i64 row, i64 *met, i64 dimensions) {
    if (side->places[row] < 0) {
        side->places[row] = *met;
        side->rows[*met] = row;
        side->bias_slopes[*met] = 0;
        memset(side->slopes + *met * dimensions, 0, sizeof(float) * (size_t)dimensions);
        (*met)++;
    }
    return side->places[row];
}

/* A step of AdaGrad. */
static void descend(float *restrict x, float *restrict squares, const float *restrict g, float rate, i64 count) {
    for (i64 j = 0; j < count; j++) {
        squares[j] += g[j] * g[j];
        x[j] -= rate * g[j] / (__builtin_sqrtf(squares[j]) + 1e-10f);
    }
}

static void update(Side *side, i64 met, float rate, i64 dimensions) {
    for (i64 k = 0; k < met; k++) {
        const i64 row = side->rows[k];
        descend(side->vectors + row * dimensions, side->vector_squares + row * dimensions,
                side->slopes + k * dimensions, rate, dimensions);
        descend(side->bias + row, side->bias_squares + row, side->bias_slopes + k, rate, 1);
        side->places[row] = -1;
    }
}

/* pairs: (count, 2); targets and weights: (count). The sum of weight * error^2; less than zero if a word beyond the
 * vocabulary was met: then nothing has changed. */
double sweep(Side given, Side predicted, const i64 *pairs, const float *targets, const float *weights, i64 count,
             i64 vocabulary, i64 dimensions, i64 batch, float rate) {
    u64 largest = 0; /* as unsigned, negative numbers are large too */
    for (i64 i = 0; i < 2 * count; i++) largest = (u64)pairs[i] > largest ? (u64)pairs[i] : largest;
    if (largest >= (u64)vocabulary) return -1;
    double loss = 0;
    for (i64 first = 0; first < count; first += batch) {
        const i64 last = count - first < batch ? count : first + batch;
        i64 met[2] = {0, 0};
        for (i64 i = first; i < last; i++) {
            const i64 w = pairs[2 * i], c = pairs[2 * i + 1];
            const float *x = given.vectors + w * dimensions, *y = predicted.vectors + c * dimensions;
            const i64 here = place_of(&given, w, met, dimensions), there = place_of(&predicted, c, met + 1, dimensions);
            const float error = dot(x, y, dimensions) + given.bias[w] + predicted.bias[c] - targets[i];
            const float slope = weights[i] * error;
            loss += (double)slope * error;
            add(given.slopes + here * dimensions, y, slope, dimensions);
            add(predicted.slopes + there * dimensions, x, slope, dimensions);
            given.bias_slopes[here] += slope;
            predicted.bias_slopes[there] += slope;
        }
        update(&given, met[0], rate, dimensions);
        update(&predicted, met[1], rate, dimensions);
    }
    return loss;
}

/* Two words, one entry: an error of -1 pulls both vectors and both constants up by rate / sqrt(2). */
int self_test(void) {
    enum { DIMENSIONS = LANES + 1 };
    float x[2 * DIMENSIONS] = {0}, y[2 * DIMENSIONS] = {0}, p[2] = {0}, q[2] = {0};
    float xs[2 * DIMENSIONS], ys[2 * DIMENSIONS], ps[2] = {1, 1}, qs[2] = {1, 1};
    float slopes[2][DIMENSIONS], bias_slopes[2], target = 2, weight = 1;
    i64 rows[2], places[4] = {-1, -1, -1, -1}, pair[2] = {1, 0};
    for (int j = 0; j < 2 * DIMENSIONS; j++) xs[j] = ys[j] = 1;
    x[DIMENSIONS] = y[0] = 1;
    Side given = {x, p, xs, ps, slopes[0], bias_slopes, rows, places};
    Side predicted = {y, q, ys, qs, slopes[1], bias_slopes + 1, rows + 1, places + 2};
    const double loss = sweep(given, predicted, pair, &target, &weight, 1, 2, DIMENSIONS, 1, 1.0f);
    const float up = 0.70710678f, a = x[DIMENSIONS] - 1 - up, b = y[0] - 1 - up, c = p[1] - up, d = q[0] - up;
    return !(loss == 1.0 && a * a + b * b + c * c + d * d < 1e-12f && x[0] == 0 && places[1] == -1);
}
