/* Value and gradient of a loss, row by row, in one pass over the logits.

   Plain C without headers of Python or torch: `native.py` loads the library and calls it by pointers.
   The algorithm is in rows.h, written once and compiled for float and double. No fast-math: infinities
   and denormals keep their meaning, and loading the library changes nothing for the process.

   Rows are independent of each other, so the result does not depend on the number of threads. */

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 512 };      /* classes that are summed in REAL before the sum goes on in double */
enum { PAD = 16 };         /* classes of a row are padded to a multiple of this */
enum { ARRAYS = 4 };       /* of a row's length, for the kernel's own use */
enum { MOST_PARTS = 8, MOST_TERMS = 32, NEAR = 5, MOST_THREADS = 64 };
enum { SPLIT = 1 << 15 };  /* numbers from which on a second thread pays */

/* what `rows` returns */
enum { DONE, LABEL, LOGITS, MEMORY };

enum role { TARGET, OTHERS, PAIRS, SHARE, REMAINDER, COSINE };
enum kind { POLYNOMIAL, LOG, FOCAL, POWER, SHIFTED_POWER, MIRRORED_POWER, BOUNDED_COSINE };

typedef struct {
    enum role role;
    enum kind kind;
    double factor;        /* of the part in the sum, times the larger of */
    double shared, least; /* the first over the number of rivals, and the second */
    double relaxation;    /* m of an eps-softmax in front of it, or 0 */
    double fewest, most;  /* numbers of rivals between which it counts, both included */
    double a, b;          /* parameters of the base function */
    double floor, top;    /* logarithm below which it is constant, and its value there */
    int terms, means;     /* of the polynomials in `table`: the first, the others */
    int even;             /* whether the density has no odd powers of 2x - 1 */
    const double *table;  /* density of p, mean of the density over [0, p], and over [p, 1] of 1 - p */
    double reach;         /* up to which the first two are also given by NEAR terms each, or 0 */
    const double *near;   /* in powers of 2p / reach - 1 */
} Part;

typedef struct {
    int count;
    double constant;  /* added to every value */
    double length;    /* to which logits of a larger norm than `above` are rescaled, or 0 */
    double above, added; /* the second is added to the norm that is divided by */
    int smooth;       /* whether any row can be evaluated, masked and infinite logits included */
    Part parts[MOST_PARTS];
} Plan;

/* numbers as `Form.numbers` of formula.py writes them */
static void read_plan(const double *numbers, Plan *plan)
{
    plan->count = (int)*numbers++;
    plan->constant = *numbers++;
    plan->length = *numbers++;
    plan->above = *numbers++;
    plan->added = *numbers++;
    plan->smooth = 1;
    for (Part *part = plan->parts; part < plan->parts + plan->count; part++) {
        part->role = (enum role)(int)*numbers++;
        part->kind = (enum kind)(int)*numbers++;
        part->factor = *numbers++;
        part->shared = *numbers++;
        part->least = *numbers++;
        part->relaxation = *numbers++;
        part->fewest = *numbers++;
        part->most = *numbers++;
        part->a = *numbers++;
        part->b = *numbers++;
        part->floor = *numbers++;
        part->top = *numbers++;
        part->terms = (int)*numbers++;
        part->means = (int)*numbers++;
        part->table = numbers;
        part->even = part->terms % 2 == 1;
        for (int k = 1; k < part->terms; k += 2) part->even &= numbers[k] == 0;
        numbers += part->terms + 2 * part->means;
        part->reach = *numbers++;
        part->near = numbers;
        numbers += part->reach > 0 ? 2 * NEAR : 0;
        plan->smooth &= part->kind == POLYNOMIAL || part->kind == BOUNDED_COSINE;
    }
}

/* A base function at the label's probability p = 1 - q, in double: h and p times the density. */
typedef struct {
    double value, slope;
} Own;

static double horner(const double *powers, int terms, double x)
{
    double s = 2 * x - 1, sum = 0;
    for (int k = terms; k-- > 0;) sum = sum * s + powers[k];
    return sum;
}

/* ((origin + step)^q - origin^q) / q without cancellation for small steps */
static double power_change(double origin, double step, double q)
{
    return pow(origin, q) / q * expm1(q * log1p(step / origin));
}

static Own own_of(const Part *part, double log_p, double p, double q)
{
    double a = part->a, b = part->b;
    switch (part->kind) {
    case POLYNOMIAL: {
        const double *density = part->table, *down = density + part->terms + part->means;
        return (Own){q * horner(down, part->means, q), p * horner(density, part->terms, p)};
    }
    case LOG:
        return (Own){-log_p, 1};
    case FOCAL: {
        double factor = pow(q, a), ratio = q == 0 ? -1 : log_p / q;
        return (Own){-factor * log_p, b ? factor : factor * (1 - a * (p == 0 ? 0 : p * ratio))};
    }
    case POWER:
        return (Own){-expm1(a * log_p) / a, exp(a * log_p)};
    case SHIFTED_POWER:
        /* a + p is small beside q: a rounding error of q counts 1 / a times */
        if (q > 0.5) q = -expm1(log_p);
        return (Own){-power_change(a + 1, -q, b), p * pow(a + p, b - 1)};
    default: /* MIRRORED_POWER */
        return (Own){power_change(a - 1, q, b), p * pow(a - p, b - 1)};
    }
}

typedef struct {
    const Plan *plan;
    const void *logits;
    const int64_t *target;
    long start, end, classes;
    double by;
    void *value, *gradient;
    int status;
} Job;

/* exp for x <= 0; below the smallest denormal, and for -inf, 0. A sum with 1.5 times 2 to the number of
   mantissa bits rounds x / log 2 to an integer n and leaves it in the low bits, from where a shift makes
   an exponent of it. The power is taken too large, by 2^64 or 2^512, and divided by that at the end, so
   that it is never denormal itself and the result underflows gradually. */
INLINE float exponential_f32(float x)
{
    x = x < -104.0f ? -104.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f, power;
    float r = (x - n * 0.693145751953125f) - n * 1.428606820309417e-6f;
    /* (exp(r) - 1 - r) / r^2 at the Chebyshev points of |r| <= log(2) / 2: within 0.1 rounding errors */
    float sum = 0.0013926184f;
    sum = sum * r + 0.00836317893f;
    sum = sum * r + 0.0416665561f;
    sum = sum * r + 0.166665763f;
    sum = sum * r + 0.5f;
    sum = (sum * r) * r + r + 1.0f;
    uint32_t word;
    memcpy(&word, &shifted, 4);
    word = (word + 127 + 64) << 23;
    memcpy(&power, &word, 4);
    return sum * power * 0x1p-64f;
}

INLINE double exponential_f64(double x)
{
    const double shift = 6755399441055744.0;
    x = x < -746.0 ? -746.0 : x;
    double shifted = x * 1.4426950408889634 + shift, n = shifted - shift, power;
    double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double sum = 1.0 / 6227020800;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = (sum * r) * r + r + 1.0;
    uint64_t word;
    memcpy(&word, &shifted, 8);
    word = (word + 1023 + 512) << 52;
    memcpy(&power, &word, 8);
    return sum * power * 0x1p-512;
}

/* log for normal x in (0, 1]: x = 2^n m with m near 1, log m = 2 artanh((m - 1) / (m + 1)) */
INLINE float logarithm_f32(float x)
{
    int32_t word, n;
    float m;
    memcpy(&word, &x, 4);
    n = (word - 0x3f3504f3) >> 23; /* the word of the root of one half */
    word -= (int32_t)((uint32_t)n << 23);
    memcpy(&m, &word, 4);
    float f = (m - 1.0f) / (m + 1.0f), g = f * f;
    float sum = 1.0f / 11;
    sum = sum * g + 1.0f / 9;
    sum = sum * g + 1.0f / 7;
    sum = sum * g + 1.0f / 5;
    sum = sum * g + 1.0f / 3;
    return (float)n * 0.693147180559945f + 2 * (f + f * g * sum);
}

INLINE double logarithm_f64(double x)
{
    const double shift = 6755399441055744.0;
    uint64_t word, shifted;
    int64_t n;
    double m, whole;
    memcpy(&word, &x, 8);
    /* arithmetic shifts of 64 bits are slow before AVX-512: n + 1024 is not negative */
    n = (int64_t)((word - 0x3fe6a09e667f3bcdULL + (1024ULL << 52)) >> 52) - 1024;
    word -= (uint64_t)n << 52;
    memcpy(&m, &word, 8);
    memcpy(&shifted, &shift, 8);
    shifted += (uint64_t)n;
    memcpy(&whole, &shifted, 8);
    double f = (m - 1) / (m + 1), g = f * f;
    double sum = 1.0 / 25;
    sum = sum * g + 1.0 / 23;
    sum = sum * g + 1.0 / 21;
    sum = sum * g + 1.0 / 19;
    sum = sum * g + 1.0 / 17;
    sum = sum * g + 1.0 / 15;
    sum = sum * g + 1.0 / 13;
    sum = sum * g + 1.0 / 11;
    sum = sum * g + 1.0 / 9;
    sum = sum * g + 1.0 / 7;
    sum = sum * g + 1.0 / 5;
    sum = sum * g + 1.0 / 3;
    return (whole - shift) * 0.693147180559945309417 + 2 * (f + f * g * sum);
}

#define REAL float
#define NAME(name) name##_f32
#define ABSOLUTE fabsf
#define SQUARE_ROOT sqrtf
#include "rows.h"
#undef REAL
#undef NAME
#undef ABSOLUTE
#undef SQUARE_ROOT
#define REAL double
#define NAME(name) name##_f64
#define ABSOLUTE fabs
#define SQUARE_ROOT sqrt
#include "rows.h"

/* Of what is handed over: the arguments of `rows`, the numbers of a plan, roles and kinds. */
int lossforge_layout(void)
{
    return 4; /* LAYOUT in native.py */
}

const char *lossforge_compiler(void)
{
    return __VERSION__;
}

/* The set of instructions that the loader has chosen. */
const char *lossforge_instructions(void)
{
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
    if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
    return "x86-64";
#else
    return "baseline";
#endif
}

/* The rows in equal parts, which the threads of a team take one after the other. */
typedef struct {
    void (*work)(Job *);
    Job whole;
    long rows, parts;
    fenv_t arithmetic; /* of the caller, who may have chosen to flush denormals */
    atomic_long taken;
    atomic_int status; /* the largest of all parts */
} Team;

static void take_parts(void *argument)
{
    Team *team = argument;
    fenv_t before;
    fegetenv(&before);
    fesetenv(&team->arithmetic);
    for (long i; (i = atomic_fetch_add(&team->taken, 1)) < team->parts;) {
        Job job = team->whole;
        job.start = team->rows * i / team->parts;
        job.end = team->rows * (i + 1) / team->parts;
        team->work(&job);
        int status = atomic_load(&team->status);
        while (status < job.status
               && !atomic_compare_exchange_weak(&team->status, &status, job.status)) continue;
    }
    fesetenv(&before);
}

/* torch's OpenMP runtime, or null: it is used where it is loaded and has GNU's interface. Between
   parallel regions its threads keep their cores busy for a while, and ours would have to wait. */
typedef void Parallel(void (*)(void *), void *, unsigned threads, unsigned flags);
#ifdef __ELF__
Parallel GOMP_parallel __attribute__((weak));
static Parallel *const parallel = GOMP_parallel;
#else
static Parallel *const parallel = NULL;
#endif

static int forked; /* a child process has none of the runtime's threads, which it would wait for */

static void note_fork(void)
{
    forked = 1;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

static void *take_parts_as_thread(void *team)
{
    take_parts(team);
    return NULL;
}

static int run(void (*work)(Job *), Job whole, long rows, long threads)
{
    long parts = threads < rows ? threads : rows;
    if (rows * whole.classes < SPLIT || parts < 1) parts = 1;
    Team team = {.work = work, .whole = whole, .rows = rows, .parts = parts};
    fegetenv(&team.arithmetic);
    if (parts > 1 && parallel && !forked) {
        /* as many as torch has, even if some find no part: the runtime ends those not asked for */
        parallel(take_parts, &team, (unsigned)threads, 0);
        return team.status;
    }
    pthread_t started[MOST_THREADS];
    long others = 0, most = parts < MOST_THREADS ? parts : MOST_THREADS;
    while (others < most - 1
           && pthread_create(&started[others], NULL, take_parts_as_thread, &team) == 0)
        others++;
    take_parts(&team);
    while (others > 0) pthread_join(started[--others], NULL);
    return team.status;
}

/* Write the values and, unless `gradient` is null, the derivatives by the logits of all rows, times
   `by`; into `total`, unless it is null, the sum of the values times `by`.

   Returns DONE, or LABEL if a label is out of range, or LOGITS if one is not finite and the plan has
   parts that are not polynomials, or if sums overflow, or MEMORY if there is none. */
#define ENTRY(suffix, type)                                                                          \
    int lossforge_rows_##suffix(const double *numbers, const type *logits, const int64_t *target,     \
                                long rows, long classes, double by, type *value, type *total,         \
                                type *gradient, long threads)                                         \
    {                                                                                                 \
        Plan plan;                                                                                    \
        read_plan(numbers, &plan);                                                                    \
        Job whole = {&plan, logits, target, 0, rows, classes, by, value, gradient, DONE};             \
        int status = run(work_##suffix, whole, rows, threads);                                        \
        double sum = 0;                                                                               \
        for (long n = 0; total && n < rows; n++) sum += value[n];                                     \
        if (total) *total = (type)(by * sum);                                                         \
        return status;                                                                                \
    }
ENTRY(f32, float)
ENTRY(f64, double)
