/* One pass of stochastic gradient descent over pairs of words with negative sampling, in batches.
 *
 * Within a batch all scores and gradients are taken at the same vectors, and only then the vectors change, in the order
 * of the pairs: what a framework does, without its calls. Sums are kept in LANES parts, which become vectors.
 */
#include <stdint.h>
#include <string.h>

typedef int64_t i64;
typedef uint64_t u64;
#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { LINE = 16, AHEAD = 2 }; /* numbers in a line of the cache; pairs */

/* One register; a type that allows any address. */
typedef float Lanes __attribute__((vector_size(sizeof(float) * LANES), aligned(sizeof(float))));

/* The finaliser of splitmix64: number n of the stream that belongs to a seed. */
static u64 random_bits(u64 seed, u64 n) {
    u64 z = seed + (n + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Walker's alias method: a slot by the upper half of the bits, and by the lower half itself or its other. */
static i64 drawn(u64 bits, const i64 *keep, const i64 *other, i64 vocabulary) {
    i64 slot = (i64)(((bits >> 32) * (u64)vocabulary) >> 32);
    return (i64)(uint32_t)bits < keep[slot] ? slot : other[slot];
}

/* exp by powers of two and a polynomial, to 2 ulps; no library, so that the compiler makes vectors of it. */
static float exponential(float z) {
    z = z < -80.0f ? -80.0f : z > 80.0f ? 80.0f : z; /* NaN passes */
    const float rounder = 12582912.0f, t = z * 1.44269504f; /* 3 * 2^22: adding it leaves whole numbers */
    const float n = (t + rounder) - rounder;
    const float r = (z - n * 0.693359375f) + n * 2.12194440e-4f; /* ln 2 in two parts */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t power = (n == n ? (int32_t)n : 0) + 127;
    uint32_t bits = (uint32_t)power << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

static float dot(const float *x, const float *y, i64 dimensions) {
    Lanes part = {0};
    float sum = 0;
    i64 j = 0;
    for (; j + LANES <= dimensions; j += LANES) part += *(const Lanes *)(x + j) * *(const Lanes *)(y + j);
    for (; j < dimensions; j++) sum += x[j] * y[j];
    for (int lane = 0; lane < LANES; lane++) sum += part[lane];
    return sum;
}

/* Ask for a row that is needed soon. */
static void fetch(const float *row, i64 dimensions) {
    for (i64 j = 0; j < dimensions; j += LINE) __builtin_prefetch(row + j);
}

/* z + g x in place of z. */
static void add(float *z, const float *x, float g, i64 dimensions) {
    i64 j = 0;
    for (; j + LANES <= dimensions; j += LANES) *(Lanes *)(z + j) += g * *(const Lanes *)(x + j);
    for (; j < dimensions; j++) z[j] += g * x[j];
}

/* The sum of the losses is -ln(product * 2^(-512 * scalings)): a product costs less than a logarithm for each.
 * Fewer than no scalings: a word beyond the vocabulary was met, and its batch and those after it were left out. */
typedef struct { double product; i64 scalings; } Loss;

/* given, predicted: (vocabulary, dimensions); pairs: (count, 2).
 * slopes: (batch, samples + 1); targets: the same; before, change: (batch, dimensions); all four are working space. */
Loss sweep(float *given, float *predicted, const i64 *pairs, const i64 *keep, const i64 *other, i64 count,
           i64 vocabulary, i64 dimensions, i64 samples, i64 batch, float rate, u64 seed, float *slopes, i64 *targets,
           float *before, float *change) {
    Loss loss = {1.0, 0};
    const i64 terms = samples + 1;
    for (i64 first = 0; first < count; first += batch) {
        const i64 size = count - first < batch ? count - first : batch;
        for (i64 i = 0; i < size; i++) {
            i64 *t = targets + i * terms;
            t[0] = pairs[2 * (first + i) + 1];
            for (i64 s = 0; s < samples; s++)
                t[s + 1] = drawn(random_bits(seed, (u64)((first + i) * samples + s)), keep, other, vocabulary);
        }
        u64 largest = 0; /* as unsigned, negative numbers are large too */
        for (i64 i = 0; i < size; i++) {
            const u64 word = (u64)pairs[2 * (first + i)];
            largest = word > largest ? word : largest;
        }
        for (i64 i = 0; i < size * terms; i++) largest = (u64)targets[i] > largest ? (u64)targets[i] : largest;
        if (largest >= (u64)vocabulary) return (Loss){1.0, -1};
        for (i64 i = 0; i < size; i++) {
            const float *x = given + pairs[2 * (first + i)] * dimensions;
            const i64 *t = targets + i * terms;
            float *g = slopes + i * terms, *e = change + i * dimensions;
            if (i + AHEAD < size) { /* rows are fetched while others are computed with */
                fetch(given + pairs[2 * (first + i + AHEAD)] * dimensions, dimensions);
                for (i64 s = 0; s < terms; s++) fetch(predicted + t[AHEAD * terms + s] * dimensions, dimensions);
            }
            for (i64 s = 0; s < terms; s++) g[s] = dot(x, predicted + t[s] * dimensions, dimensions);
            g[0] = -g[0];
            for (i64 s = 0; s < terms; s++) g[s] = exponential(g[s]); /* odds of being wrong */
            for (i64 s = 0; s < terms; s++) {
                const float right = 1.0f / (1.0f + g[s]);
                loss.product *= right;
                if (loss.product < 0x1p-512) loss.product *= 0x1p512, loss.scalings++;
                g[s] *= -rate * right;
            }
            g[0] = -g[0];
            memcpy(before + i * dimensions, x, sizeof(float) * (size_t)dimensions);
            i64 j = 0;
            for (; j + LANES <= dimensions; j += LANES) {
                Lanes part = {0};
                for (i64 s = 0; s < terms; s++) part += g[s] * *(const Lanes *)(predicted + t[s] * dimensions + j);
                *(Lanes *)(e + j) = part;
            }
            for (; j < dimensions; j++) {
                e[j] = 0;
                for (i64 s = 0; s < terms; s++) e[j] += g[s] * predicted[t[s] * dimensions + j];
            }
        }
        for (i64 i = 0; i < size; i++) {
            add(given + pairs[2 * (first + i)] * dimensions, change + i * dimensions, 1.0f, dimensions);
            for (i64 s = 0; s < terms; s++)
                add(predicted + targets[i * terms + s] * dimensions, before + i * dimensions, slopes[i * terms + s],
                    dimensions);
        }
    }
    return loss;
}

/* Two words, one sample that is always word 1: the observed word 0 and the negative pull in opposite directions. */
int self_test(void) {
    enum { DIMENSIONS = LANES + 1 };
    float given[2 * DIMENSIONS] = {0}, predicted[2 * DIMENSIONS] = {0}, slopes[2], before[DIMENSIONS], change[DIMENSIONS];
    i64 pair[2] = {1, 0}, keep[2] = {0, (i64)1 << 32}, other[2] = {1, 1}, targets[2];
    given[DIMENSIONS] = given[2 * DIMENSIONS - 1] = 2;
    Loss loss = sweep(given, predicted, pair, keep, other, 1, 2, DIMENSIONS, 1, 1, 0.5f, 7, slopes, targets, before, change);
    float off = 0;
    for (int j = 0; j < DIMENSIONS; j += DIMENSIONS - 1) { /* sigma(0) = 1/2: a step of 0.5 * 0.5 * 2 */
        const float up = predicted[j] - 0.5f, down = predicted[DIMENSIONS + j] + 0.5f;
        off += up * up + down * down;
    }
    const float odds = exponential(1.0f) - 2.7182818f;
    return !(off < 1e-12f && targets[1] == 1 && loss.product == 0.25 && odds * odds < 1e-11f);
}
