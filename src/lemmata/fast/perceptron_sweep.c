/* One sweep of Rosenblatt's perceptron: every point in turn, and each misclassified one is added to the weights.
 *
 * Compiled by perceptron_sweep.py with -DREAL=float or double. The sum of a margin is kept in LANES parts, which the
 * compiler turns into vectors; in one part it would have to add number after number.
 */
#include <stdint.h>

typedef int64_t i64;
enum { LANES = 16 };

static REAL margin(const REAL *restrict w, const REAL *restrict x, i64 features) {
    REAL part[LANES] = {0}, sum = 0;
    i64 j = 0;
    for (; j + LANES <= features; j += LANES)
        for (int lane = 0; lane < LANES; lane++) part[lane] += w[j + lane] * x[j + lane];
    for (; j < features; j++) sum += w[j] * x[j];
    for (int lane = 0; lane < LANES; lane++) sum += part[lane];
    return sum;
}

/* State: the weights and, last, the bias. Writes the index of each mistake and returns how many there were. */
i64 sweep(const REAL *x, const REAL *y, REAL *state, i64 points, i64 features, i64 learn_bias, i64 *mistakes) {
    i64 count = 0;
    for (i64 i = 0; i < points; i++, x += features) {
        if (!(y[i] * (margin(state, x, features) + state[features]) <= 0)) continue;
        for (i64 j = 0; j < features; j++) state[j] += y[i] * x[j];
        if (learn_bias) state[features] += y[i];
        mistakes[count++] = i;
    }
    return count;
}

/* AND over 17 features, of which one lies outside the lanes: 18 mistakes, as by hand. */
int self_test(void) {
    REAL x[4][LANES + 1] = {{0}}, y[4] = {-1, -1, -1, 1}, state[LANES + 2] = {0};
    x[1][LANES] = x[2][0] = x[3][0] = x[3][LANES] = 1;
    i64 mistakes[4], total = 0;
    for (int again = 0; again < 20; again++) total += sweep(x[0], y, state, 4, LANES + 1, 1, mistakes);
    return !(total == 18 && state[0] == 3 && state[LANES] == 2 && state[LANES + 1] == -4);
}
