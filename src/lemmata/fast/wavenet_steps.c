/* New samples of a WaveNet, one after another: a step through all layers, then a draw.
 *
 * Compiled by wavenet_steps.py with -DREAL=float or double. Matrices lie with the outputs side by side, so that a
 * product adds whole rows, which the compiler turns into vectors without changing the order of any sum.
 */
#include <stdint.h>
#include <tgmath.h>

typedef int64_t i64;
enum { BLOCK = 32 };

typedef struct {
    i64 batch, layers, taps, channels, skips, levels;
    const REAL *embedding;             /* (levels, channels) */
    const REAL *past, *now, *gate_bias; /* (layers, taps * channels, 2 * channels), (layers, channels, ...), (layers, ...) */
    const REAL *residual, *residual_bias; /* (layers, channels, channels), (layers, channels) */
    const REAL *skip, *skip_bias;      /* (layers * channels, skips), (skips) */
    const REAL *hidden, *hidden_bias;  /* (skips, skips), (skips) */
    const REAL *head, *head_bias;      /* (skips, levels), (levels) */
    const i64 *dilation;               /* (layers) */
    REAL *memory;                      /* layer after layer, (taps * dilation, batch, channels) */
    REAL *last;                        /* (batch, channels) */
    REAL *scratch;                     /* 4 * channels + 2 * skips + levels numbers */
    double temperature;
    const double *chance;              /* (length, batch) */
    i64 *samples;                      /* (length, batch) */
} Task;

/* out += x W, a block of outputs at a time, which stays in registers. */
static void add_product(REAL *restrict out, const REAL *restrict x, const REAL *restrict w, i64 inputs, i64 outputs) {
    i64 j = 0;
    for (; j + BLOCK <= outputs; j += BLOCK) {
        REAL sum[BLOCK];
        for (int lane = 0; lane < BLOCK; lane++) sum[lane] = out[j + lane];
        for (i64 i = 0; i < inputs; i++)
            for (int lane = 0; lane < BLOCK; lane++) sum[lane] += x[i] * w[i * outputs + j + lane];
        for (int lane = 0; lane < BLOCK; lane++) out[j + lane] = sum[lane];
    }
    for (i64 i = 0; i < inputs; i++)
        for (i64 rest = j; rest < outputs; rest++) out[rest] += x[i] * w[i * outputs + rest];
}

static void copy(REAL *restrict to, const REAL *restrict from, i64 count) {
    for (i64 i = 0; i < count; i++) to[i] = from[i];
}

static void rectify(REAL *x, i64 count) {
    for (i64 i = 0; i < count; i++) x[i] = x[i] < 0 ? 0 : x[i];
}

/* The level whose stretch of the unit interval holds the chance; the likeliest if the temperature is 0. */
static i64 drawn(const REAL *logits, i64 levels, double temperature, double chance) {
    i64 best = 0;
    for (i64 k = 1; k < levels; k++)
        if (logits[k] > logits[best]) best = k;
    if (temperature == 0) return best;
    double total = 0, below = 0, most = logits[best];
    for (i64 k = 0; k < levels; k++) total += exp((logits[k] - most) / temperature);
    for (i64 k = 0; k < levels; k++) {
        below += exp((logits[k] - most) / temperature);
        if (below > chance * total) return k;
    }
    return levels - 1;
}

/* Logits of the next sample of one sequence; what its layers will still see goes into the memory. */
static const REAL *step(const Task *task, i64 sequence, i64 position) {
    i64 c = task->channels, s = task->skips, taps = task->taps;
    REAL *x = task->scratch, *both = x + c, *z = both + 2 * c, *total = z + c, *middle = total + s, *logits = middle + s;
    REAL *memory = task->memory + sequence * c;
    copy(x, task->last + sequence * c, c);
    copy(total, task->skip_bias, s);
    for (i64 layer = 0; layer < task->layers; layer++) {
        i64 dilation = task->dilation[layer], slots = taps * dilation;
        copy(both, task->gate_bias + layer * 2 * c, 2 * c);
        for (i64 tap = 0; tap < taps; tap++) /* the earliest first, which lies where this step will be written */
            add_product(both, memory + (position + tap * dilation) % slots * task->batch * c,
                        task->past + (layer * taps + tap) * c * 2 * c, c, 2 * c);
        add_product(both, x, task->now + layer * c * 2 * c, c, 2 * c);
        copy(memory + position % slots * task->batch * c, x, c);
        for (i64 i = 0; i < c; i++) z[i] = tanh(both[i]) / (1 + exp(-both[c + i]));
        add_product(total, z, task->skip + layer * c * s, c, s);
        for (i64 i = 0; i < c; i++) x[i] += task->residual_bias[layer * c + i];
        add_product(x, z, task->residual + layer * c * c, c, c);
        memory += slots * task->batch * c;
    }
    rectify(total, s);
    copy(middle, task->hidden_bias, s);
    add_product(middle, total, task->hidden, s, s);
    rectify(middle, s);
    copy(logits, task->head_bias, task->levels);
    add_product(logits, middle, task->head, s, task->levels);
    return logits;
}

/* Steps from `first` up to `end` of those asked for; the first of all is at this position of the sequence. */
void generate(const Task *task, i64 position, i64 first, i64 end) {
    for (i64 t = first; t < end; t++)
        for (i64 sequence = 0; sequence < task->batch; sequence++) {
            i64 at = t * task->batch + sequence, c = task->channels;
            const REAL *logits = step(task, sequence, position + t);
            task->samples[at] = drawn(logits, task->levels, task->temperature, task->chance[at]);
            copy(task->last + sequence * c, task->embedding + task->samples[at] * c, c);
        }
}

/* A network of one channel that says 1 until it has seen two of them, and its memory afterwards. */
int self_test(void) {
    REAL embedding[2] = {0, 9}, past[2] = {9, 0}, now[2] = {0, 9}, gate_bias[2] = {0, -4}, none[2] = {0}, one[1] = {1};
    REAL head[2] = {1, -1}, head_bias[2] = {0, (REAL)0.5}, memory[1] = {0}, last[1] = {0}, scratch[4 + 2 + 2];
    double chance[5] = {0};
    i64 dilation[1] = {1}, samples[5];
    Task task = {1, 1, 1, 1, 1, 2, embedding, past, now, gate_bias, none, none, one, none, one, none, head, head_bias,
                 dilation, memory, last, scratch, 0, chance, samples};
    generate(&task, 0, 0, 5);
    return !(samples[0] == 1 && samples[1] == 1 && samples[2] == 0 && samples[3] == 1 && samples[4] == 1);
}
