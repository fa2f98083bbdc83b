/* The linear recurrence z_t = a_t z_{t-1} + b_t and its gradients, for one kind of number at a time.
 *
 * Compiled by scan_compiled.py with -DREAL=float or double, and -DCOMPLEX for pairs of them; it says too how many lanes
 * WIDTH and LANES are. Time runs one step after another; many lanes (channels) run side by side, which is where the
 * processor's vectors and its pipeline come from:
 *
 *   columns: neighbouring channels are neighbours in memory. Up to WIDTH of them at once, vectorised by the compiler.
 *   rows:    any strides. LANES channels at once, so that the delay of one multiplication hides behind the others.
 *
 * Both do the same roundings, so they give the same bits. Running backwards in time is a negative stride, and a gate
 * that is constant in time has the stride zero. A gradient with time stride zero is summed over time, in blocks and in
 * double precision.
 */
#include <stdint.h>

typedef int64_t i64;
#define INLINE static inline __attribute__((always_inline))
enum { BLOCK = 256 };

/* x y + z with one rounding where the processor has that; written out, or the compiler would choose for each loop. */
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
#define FUSED(x, y, z) (sizeof(x) == sizeof(float) ? __builtin_fmaf(x, y, z) : __builtin_fma(x, y, z))
#else
#define FUSED(x, y, z) ((x) * (y) + (z))
#endif
INLINE REAL fused(REAL x, REAL y, REAL z) { return FUSED(x, y, z); }
INLINE double fused_wide(double x, double y, double z) { return FUSED(x, y, z); }

#ifdef COMPLEX
typedef struct { REAL re, im; } number;
typedef struct { double re, im; } total;
typedef struct { REAL re[WIDTH], im[WIDTH]; } numbers; /* apart: the compiler does not vectorise arrays of pairs */
typedef struct { double re[WIDTH], im[WIDTH]; } totals;

INLINE number fetch(const number *x) { return (number){x->re, x->im}; }
INLINE void store(number *x, number y) { x->re = y.re, x->im = y.im; }
INLINE number get(const numbers *x, i64 i) { return (number){x->re[i], x->im[i]}; }
INLINE void set(numbers *x, i64 i, number y) { x->re[i] = y.re, x->im[i] = y.im; }
INLINE total got(const totals *x, i64 i) { return (total){x->re[i], x->im[i]}; }
INLINE void put(totals *x, i64 i, total y) { x->re[i] = y.re, x->im[i] = y.im; }

INLINE number multiply_add(number x, number y, number z) {
    return (number){fused(x.re, y.re, fused(-x.im, y.im, z.re)), fused(x.re, y.im, fused(x.im, y.re, z.im))};
}
INLINE number conjugate(number x) { return (number){x.re, -x.im}; }
INLINE total add(total x, total y) { return (total){x.re + y.re, x.im + y.im}; }
INLINE total add_product(total z, number x, number y) {
    return (total){fused_wide(x.re, y.re, fused_wide(-x.im, y.im, z.re)),
                   fused_wide(x.re, y.im, fused_wide(x.im, y.re, z.im))};
}
INLINE total widen(number x) { return (total){x.re, x.im}; }
INLINE number narrow(total x) { return (number){(REAL)x.re, (REAL)x.im}; }
INLINE number real(double x) { return (number){(REAL)x, 0}; }
INLINE int differ(number x, number y) { return x.re != y.re || x.im != y.im; }
#else
typedef REAL number;
typedef double total;
typedef struct { REAL of[WIDTH]; } numbers;
typedef struct { double of[WIDTH]; } totals;

INLINE number fetch(const number *x) { return *x; }
INLINE void store(number *x, number y) { *x = y; }
INLINE number get(const numbers *x, i64 i) { return x->of[i]; }
INLINE void set(numbers *x, i64 i, number y) { x->of[i] = y; }
INLINE total got(const totals *x, i64 i) { return x->of[i]; }
INLINE void put(totals *x, i64 i, total y) { x->of[i] = y; }

INLINE number multiply_add(number x, number y, number z) { return fused(x, y, z); }
INLINE number conjugate(number x) { return x; }
INLINE total add(total x, total y) { return x + y; }
INLINE total add_product(total z, number x, number y) { return fused_wide(x, y, z); }
INLINE total widen(number x) { return x; }
INLINE number narrow(total x) { return (number)x; }
INLINE number real(double x) { return (number)x; }
INLINE int differ(number x, number y) { return x != y; }
#endif

static const number zero;
static const number zeros[WIDTH];

/* Where the first number lies, and how far apart neighbours along each axis are, in numbers. */
typedef struct {
    number *data;
    i64 batch, time, channel;
} tensor;

typedef struct {
    i64 time, channel, width; /* width: lanes of one block */
    tensor a, b, z0, z, grad, da, db, dz0;
} task;

INLINE number *at(const tensor *x, i64 batch, i64 channel) {
    return x->data + batch * x->batch + channel * x->channel;
}

/* `count` and `unit` are known when compiled; with `unit`, channels are neighbours in memory. */
INLINE void forward_lanes(const task *k, i64 batch, i64 first, const i64 count, const int unit) {
    const number *restrict a = at(&k->a, batch, first), *restrict b = at(&k->b, batch, first);
    number *restrict z = at(&k->z, batch, first);
    const i64 across_a = unit ? 1 : k->a.channel, across_b = unit ? 1 : k->b.channel;
    const i64 across_z = unit ? 1 : k->z.channel;
    numbers state;
    for (i64 i = 0; i < count; i++) set(&state, i, k->z0.data ? *at(&k->z0, batch, first + i) : zero);
    for (i64 t = 0; t < k->time; t++) {
        for (i64 i = 0; i < count; i++) {
            const number now = multiply_add(fetch(a + i * across_a), get(&state, i), fetch(b + i * across_b));
            set(&state, i, now);
            store(z + i * across_z, now);
        }
        a += k->a.time, b += k->b.time, z += k->z.time;
    }
}

/* db_t = grad_t + conj(a_{t+1}) db_{t+1} and da_t = db_t conj(z_{t-1}), from the last step to the first. */
INLINE void backward_lanes(const task *k, i64 batch, i64 first, const i64 count, const int unit, const int summed) {
    const i64 end = k->time - 1;
    const number *restrict a = at(&k->a, batch, first) + end * k->a.time;
    const number *restrict z = at(&k->z, batch, first) + end * k->z.time;
    const number *restrict grad = at(&k->grad, batch, first) + end * k->grad.time;
    number *restrict da = at(&k->da, batch, first) + end * k->da.time;
    number *restrict db = at(&k->db, batch, first) + end * k->db.time;
    const i64 across_a = unit ? 1 : k->a.channel, across_grad = unit ? 1 : k->grad.channel;
    const i64 across_da = unit ? 1 : k->da.channel, across_db = unit ? 1 : k->db.channel;
    numbers carry, gate;
    totals sum, part;
    for (i64 i = 0; i < count; i++) {
        set(&carry, i, zero), set(&gate, i, zero);
        put(&sum, i, widen(zero)), put(&part, i, widen(zero));
    }
    for (i64 t = end; t >= 0; t--) {
        const number *restrict before = t ? z - k->z.time : k->z0.data ? at(&k->z0, batch, first) : zeros;
        const i64 across_z = unit ? 1 : t ? k->z.channel : k->z0.data ? k->z0.channel : 1;
        for (i64 i = 0; i < count; i++) {
            const number gradient = fetch(grad + i * across_grad);
            const number now = multiply_add(conjugate(get(&gate, i)), get(&carry, i), gradient);
            const number state = conjugate(fetch(before + i * across_z));
            set(&gate, i, fetch(a + i * across_a));
            set(&carry, i, now);
            store(db + i * across_db, now);
            if (summed) put(&part, i, add_product(got(&part, i), now, state));
            else store(da + i * across_da, multiply_add(now, state, zero));
        }
        if (summed && t % BLOCK == 0)
            for (i64 i = 0; i < count; i++) {
                put(&sum, i, add(got(&sum, i), got(&part, i)));
                put(&part, i, widen(zero));
            }
        a -= k->a.time, z -= k->z.time, grad -= k->grad.time, da -= k->da.time, db -= k->db.time;
    }
    for (i64 i = 0; i < count; i++) {
        if (summed) store(da + i * across_da, narrow(got(&sum, i)));
        store(at(&k->dz0, batch, first + i), multiply_add(conjugate(get(&gate, i)), get(&carry, i), zero));
    }
}

/* Lanes come in blocks, counted over the batch; threads take different ones. */
typedef struct {
    i64 batch, first, count;
} lanes;

INLINE lanes lanes_of(const task *k, i64 block) {
    const i64 blocks = (k->channel + k->width - 1) / k->width, first = block % blocks * k->width;
    return (lanes){block / blocks, first, k->channel - first < k->width ? k->channel - first : k->width};
}

void forward_columns(const task *k, i64 from, i64 to) {
    for (i64 block = from; block < to; block++) {
        const lanes l = lanes_of(k, block);
        forward_lanes(k, l.batch, l.first, l.count, 1);
    }
}

/* A full block has a count that the compiler knows, and stays in registers. */
void forward_rows(const task *k, i64 from, i64 to) {
    for (i64 block = from; block < to; block++) {
        const lanes l = lanes_of(k, block);
        if (l.count == LANES) forward_lanes(k, l.batch, l.first, LANES, 0);
        else for (i64 i = 0; i < l.count; i++) forward_lanes(k, l.batch, l.first + i, 1, 0);
    }
}

void backward_columns(const task *k, i64 from, i64 to) {
    for (i64 block = from; block < to; block++) {
        const lanes l = lanes_of(k, block);
        if (k->da.time) backward_lanes(k, l.batch, l.first, l.count, 1, 0);
        else backward_lanes(k, l.batch, l.first, l.count, 1, 1);
    }
}

INLINE void backward_few(const task *k, i64 batch, i64 first, const i64 count) {
    if (k->da.time) backward_lanes(k, batch, first, count, 0, 0);
    else backward_lanes(k, batch, first, count, 0, 1);
}

void backward_rows(const task *k, i64 from, i64 to) {
    for (i64 block = from; block < to; block++) {
        const lanes l = lanes_of(k, block);
        if (l.count == LANES) backward_few(k, l.batch, l.first, LANES);
        else for (i64 i = 0; i < l.count; i++) backward_few(k, l.batch, l.first + i, 1);
    }
}

/* Whether this processor runs every path and gets what it should: with a = 1/2 and b = 1, z_t = 2 - 2^-t exactly. */
enum { STEPS = 12, CHANNELS = WIDTH + LANES + 3 };
static number tried[6][STEPS * CHANNELS];

int self_test(void) {
    const i64 blocks[] = {2, (CHANNELS + LANES - 1) / LANES};
    int wrong = 0;
    for (int rows = 0; rows < 2; rows++) {
        tensor x[6];
        for (int i = 0; i < 6; i++)
            x[i] = (tensor){tried[i], 0, rows ? 1 : CHANNELS, rows ? STEPS : 1};
        for (i64 i = 0; i < STEPS * CHANNELS; i++) tried[0][i] = real(0.5), tried[1][i] = real(1);
        for (int summed = 0; summed < 2; summed++) {
            tensor da = x[3], dz0 = x[5];
            if (summed) da.time = 0;
            const task k = {STEPS, CHANNELS, rows ? LANES : WIDTH, x[0], x[1], {0}, x[2], x[1], da, x[4], dz0};
            (rows ? forward_rows : forward_columns)(&k, 0, blocks[rows]);
            (rows ? backward_rows : backward_columns)(&k, 0, blocks[rows]);
            for (i64 c = 0; c < CHANNELS; c++) {
                double sum = 0, state = 0;
                for (i64 t = 0; t < STEPS; t++) {
                    const i64 i = t * x[0].time + c * x[0].channel;
                    const double later = 2 - 1.0 / (1 << (STEPS - 1 - t));
                    const number expected = real(later * state);
                    sum += later * state, state = state / 2 + 1;
                    wrong += differ(tried[2][i], real(state)) + differ(tried[4][i], real(later));
                    if (!summed) wrong += differ(tried[3][i], expected);
                }
                if (summed) wrong += differ(tried[3][c * da.channel], real(sum));
            }
        }
    }
    return wrong;
}
