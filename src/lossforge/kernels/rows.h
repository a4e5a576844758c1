/* One row of logits; included by rows.c for REAL float and double.

   With u = softmax(z), v = 1 - u_t as a sum and s_k = dL / d log u_k, the derivative by logit k is
   s_k - u_k sum_j s_j, and by the label's s_t v - u_t sum_{j != t} s_j. What a part adds:

     target      h(u_t)                        s_t = -slope(u_t)
     others      sum_{i != t} H(u_i)           s_i = slope(u_i)
     share       h(u_t) / S, S = sum_k h(u_k)  s_k = h(u_t) slope(u_k) / S^2 - [k = t] slope(u_t) / S
     remainder   -H(u_t) / S, S = sum_k H(u_k) s_k as of the share, with -H for h
     pairs       the mean over i != t of h(p), p = u_t / (u_t + u_i): derivative slope(p) (1 - p) by
                 logit i, and minus their sum by the label's
     cosine      1 - g / n of the logits, see `cosine` below: derivatives likewise

   where slope(p) = p density(p). A part's factor may depend on the number of rivals, masked classes
   left out, and so may whether it counts at all. In the arrays of a row the label's own place counts as a class of
   probability 0, which adds nothing, and so does the padding. */

typedef struct {
    const REAL *z;
    long classes, padded, label;
    REAL *weight;      /* exp(z - top); u without its factor */
    REAL *sum;         /* of the parts' derivatives by the logits, but for -u_k sum_j s_j, times `by` */
    REAL *other;       /* for one part's own use */
    double top, scale; /* largest logit, and what makes probabilities of weights */
    double excess;     /* log-softmax is z - top - excess */
    double log_p, p, q, own_weight; /* of the label */
    double value;
    double by;                /* what derivatives are multiplied by */
    double rivals;            /* their number, at least 1 */
    double own, rest, paired; /* s_t, the sum of the other s_j, that of derivatives by the logits */
} NAME(Row);

INLINE double NAME(factor_of)(const NAME(Row) * row, const Part *part)
{
    double shared = part->shared / row->rivals;
    return part->factor * (shared > part->least ? shared : part->least);
}

#include "polynomials.h"

/* Powers of probabilities of the other classes: H(u) = u^a / a. */
INLINE void NAME(others_power)(NAME(Row) * row, const Part *part)
{
    const REAL *restrict weight = row->weight, *restrict z = row->z;
    REAL *restrict sum = row->sum;
    double each = NAME(factor_of)(row, part), slopes = 0;
    REAL scale = (REAL)row->scale, factor = (REAL)(row->by * each), a = (REAL)part->a;
    REAL top = (REAL)row->top, excess = (REAL)row->excess;
    for (long start = 0; start < row->classes; start += BLOCK) {
        long end = row->classes - start < BLOCK ? row->classes : start + BLOCK;
        REAL s = 0;
        int label = (int)(row->label - start); /* compared as int, as wide as a float */
        if (part->a == 2) {
#pragma omp simd reduction(+ : s)
            for (long k = start; k < end; k++) {
                REAL u = weight[k] * scale;
                s += u * u;
                sum[k] += factor * (u * u);
            }
        } else {
#pragma omp simd reduction(+ : s)
            for (long k = start; k < end; k++) {
                REAL slope = NAME(exponential)(a * (z[k] - top - excess));
                slope = (int)(k - start) == label ? 0 : slope;
                s += slope;
                sum[k] += factor * slope;
            }
        }
        slopes += s;
    }
    row->value += each * slopes / part->a;
    row->rest += each * slopes;
}

INLINE REAL NAME(focal_factor)(REAL q, REAL gamma)
{
    if (gamma == (REAL)0.5) return SQUARE_ROOT(q);
    if (gamma == 1) return q;
    if (gamma == 2) return q * q;
    return q > 0 ? NAME(exponential)(gamma * NAME(logarithm)(q > 0 ? q : 1)) : 0;
}

/* A share of the total over all classes, of h or of H = top - h where h is constant below `floor`. */
INLINE int NAME(normalised)(NAME(Row) * row, const Part *part, const int focal, const int plain)
{
    const REAL *restrict z = row->z;
    REAL *restrict slope = row->other;
    const int remainder = part->role == REMAINDER;
    REAL top = (REAL)row->top, excess = (REAL)row->excess;
    REAL floor = (REAL)part->floor, height = (REAL)part->top, gamma = (REAL)part->a;
    REAL sign = remainder ? -1 : 1, shift = remainder ? height : 0;
    const int detached = part->b != 0;
    double total = 0;
    for (long start = 0; start < row->classes; start += BLOCK) {
        long end = row->classes - start < BLOCK ? row->classes : start + BLOCK;
        REAL s = 0;
        int label = (int)(row->label - start);
#pragma omp simd reduction(+ : s)
        for (long k = start; k < end; k++) {
            REAL log_p = z[k] - top - excess, h, d;
            if (focal) {
                REAL p = NAME(exponential)(log_p), q = 1 - p;
                q = q > 0 ? q : 0;
                REAL factor = plain ? SQUARE_ROOT(q) : NAME(focal_factor)(q, gamma);
                REAL ratio = q > 0 ? log_p / (q > 0 ? q : 1) : -1;
                h = -factor * log_p;
                d = detached ? factor : factor * (1 - gamma * p * ratio);
            } else {
                h = -log_p;
                d = 1;
            }
            if (remainder) {
                h = log_p <= floor ? height : h;
                d = log_p <= floor ? 0 : d;
            }
            s += (int)(k - start) == label ? 0 : shift + sign * h;
            slope[k] = (int)(k - start) == label ? 0 : d;
        }
        total += s;
    }
    Own own = own_of(part, row->log_p, row->p, row->q);
    if (remainder && row->log_p <= part->floor) own = (Own){part->top, 0};
    double mine = remainder ? part->top - own.value : own.value, others = total;
    total += mine;
    if (!(total > 0 && total < INFINITY)) return LOGITS;
    double share = mine / total, each = part->factor * share / total;
    row->value += (remainder ? -part->factor : part->factor) * share;
    row->own -= part->factor * own.slope * (others / total) / total;
    REAL factor = (REAL)(row->by * each);
    REAL *restrict sum = row->sum;
    double slopes = 0;
    for (long start = 0; start < row->classes; start += BLOCK) {
        long end = row->classes - start < BLOCK ? row->classes : start + BLOCK;
        REAL s = 0;
#pragma omp simd reduction(+ : s)
        for (long k = start; k < end; k++) {
            s += slope[k];
            sum[k] += factor * slope[k];
        }
        slopes += s;
    }
    row->rest += each * slopes;
    return DONE;
}

INLINE void NAME(target)(NAME(Row) * row, const Part *part)
{
    double log_p = row->log_p, p = row->p, q = row->q, passed = 1, m = part->relaxation;
    if (m > 0) { /* (u + m [k = arg max]) / (1 + m) */
        double both = 1 + m;
        if (row->z[row->label] == (REAL)row->top) {
            for (long k = 0; k < row->label; k++)
                if (row->z[k] == (REAL)row->top) goto second; /* of equal classes the first counts */
            passed = p / (m + p);
            log_p = log1p(-q / both), p = (m + p) / both, q = q / both;
        } else {
        second:
            log_p -= log1p(m), q = (m + q) / both, p = p / both;
        }
    }
    Own own = own_of(part, log_p, p, q);
    row->value += part->factor * own.value;
    row->own -= part->factor * own.slope * passed;
}

/* The bounded cosine. With r rivals of mean m and squared deviations S, g = (z_t - m) sqrt(r / (r + 1))
   and n^2 = 1 + S + g^2, it is 1 - g / n, or (1 + S) / (n (n + g)) where g > 0 and that cancels; its
   derivative by a rival's logit is ((1 + S) / sqrt(r (r + 1)) + g (z_i - m)) / n^3. Logits are counted
   from a rival's, so that their differences are not rounded beside a label's that is far off, and
   halved and divided by their range, so that no difference or square overflows. */
INLINE void NAME(cosine)(NAME(Row) * row, const Part *part)
{
    const REAL *restrict z = row->z;
    REAL *restrict x = row->other, *restrict sum = row->sum;
    const long classes = row->classes, label = row->label;
    long first = -1, masked = 0;
    REAL least = INFINITY;
    for (long k = 0; k < classes && first < 0; k++)
        if (k != label && z[k] > -INFINITY) first = k;
    if (first < 0) return; /* without a rival there is no direction */
#pragma omp simd reduction(min : least) reduction(+ : masked)
    for (long k = 0; k < classes; k++) {
        masked += z[k] == -INFINITY;
        least = z[k] > -INFINITY && z[k] < least ? z[k] : least;
    }
    const double r = row->rivals, half_range = 0.5 * row->top - 0.5 * (double)least;
    const double unit = half_range > 0.5 ? half_range : 0.5;
    const REAL start = (REAL)0.5 * z[first], by = (REAL)(1 / unit);
#pragma omp simd
    for (long k = 0; k < classes; k++) x[k] = ((REAL)0.5 * z[k] - start) * by;
    const double own = x[label];
    x[label] = 0;
    for (long k = 0; masked && k < classes; k++) x[k] = z[k] == -INFINITY ? 0 : x[k];
    double mean = 0, scatter = 0;
    for (long from = 0; from < classes; from += BLOCK) {
        long end = classes - from < BLOCK ? classes : from + BLOCK;
        REAL s = 0;
#pragma omp simd reduction(+ : s)
        for (long k = from; k < end; k++) s += x[k];
        mean += s;
    }
    mean /= r;
    const REAL centre = (REAL)mean;
    x[label] = centre;
    for (long k = 0; masked && k < classes; k++) x[k] = z[k] == -INFINITY ? centre : x[k];
    for (long from = 0; from < classes; from += BLOCK) {
        long end = classes - from < BLOCK ? classes : from + BLOCK;
        REAL s = 0;
#pragma omp simd reduction(+ : s)
        for (long k = from; k < end; k++) s += (x[k] - centre) * (x[k] - centre);
        scatter += s;
    }
    const double one = 0.5 / unit, rest = one * one + scatter, lead = (own - mean) * sqrt(r / (r + 1));
    const double n = sqrt(rest + lead * lead), below = rest / (n * (n + fabs(lead)));
    double each = part->factor * (part->a > 0 && r > part->a ? sqrt(r / part->a) : 1);
    row->value += each * (lead > 0 ? below : 2 - below);
    each *= one / (n * n * n);
    row->paired += each * rest * sqrt(r / (r + 1));
    const REAL even = (REAL)(row->by * each * rest / sqrt(r * (r + 1)));
    const REAL along = (REAL)(row->by * each * lead);
#pragma omp simd
    for (long k = 0; k < classes; k++) sum[k] += even + along * (x[k] - centre);
    for (long k = 0; masked && k < classes; k++) sum[k] = z[k] == -INFINITY ? 0 : sum[k];
}

INLINE int NAME(part)(NAME(Row) * row, const Part *part, const NAME(Table) * table)
{
    switch (part->role) {
    case TARGET:
        NAME(target)(row, part);
        return DONE;
    case OTHERS:
        if (part->kind == POWER) NAME(others_power)(row, part);
        else FOR_TERMS(NAME(others_of_terms), row, part, table);
        return DONE;
    case PAIRS:
        FOR_TERMS(NAME(pairs_of_terms), row, part, table);
        return DONE;
    case COSINE:
        NAME(cosine)(row, part);
        return DONE;
    default:
        if (part->kind == LOG) return NAME(normalised)(row, part, 0, 0);
        if (part->a == 0.5) return NAME(normalised)(row, part, 1, 1);
        return NAME(normalised)(row, part, 1, 0);
    }
}

INLINE int NAME(one)(NAME(Row) * row, const Plan *plan, const NAME(Table) * tables, REAL *value,
                     REAL *gradient)
{
    const REAL *restrict z = row->z;
    REAL *restrict weight = row->weight, *restrict sum = row->sum;
    REAL top = -INFINITY, least = INFINITY;
#pragma omp simd reduction(max : top) reduction(min : least)
    for (long k = 0; k < row->classes; k++) {
        top = z[k] > top ? z[k] : top;
        least = z[k] < least ? z[k] : least;
    }
    REAL mine = z[row->label];
    double total = 0;
    for (long start = 0; start < row->classes; start += BLOCK) {
        long end = row->classes - start < BLOCK ? row->classes : start + BLOCK;
#pragma omp simd
        for (long k = start; k < end; k++) weight[k] = NAME(exponential)(z[k] - top);
    }
    double own = weight[row->label];
    weight[row->label] = 0;
    for (long start = 0; start < row->padded; start += BLOCK) {
        long end = row->padded - start < BLOCK ? row->padded : start + BLOCK;
        REAL s = 0;
#pragma omp simd reduction(+ : s)
        for (long k = start; k < end; k++) s += weight[k];
        total += s;
    }
    memset(sum, 0, (size_t)row->padded * sizeof(REAL));
    double rest = total;
    total += own;
    long finite = row->classes;
    if (!(least > -INFINITY && total < INFINITY)) { /* NaN or +inf make the sum NaN */
        if (!plan->smooth) return LOGITS;
        long masked = 0;
        for (long k = 0; k < row->classes; k++) masked += z[k] == -INFINITY;
        int known = masked < row->classes && total < INFINITY;
        if (!known || mine == -INFINITY) {
            /* a masked class cannot be the right one: infinite, with nothing to learn from it */
            *value = known ? INFINITY : NAN;
            for (long k = 0; gradient && k < row->classes; k++) gradient[k] = known ? 0 : NAN;
            return DONE;
        }
        finite -= masked;
    }
    row->rivals = finite > 1 ? (double)(finite - 1) : 1;
    row->top = top;
    row->scale = 1 / total;
    row->own_weight = own;
    row->p = own * row->scale;
    row->q = rest * row->scale;
    if (!plan->smooth) {
        row->excess = mine == top ? log1p(rest) : log(total);
        row->log_p = (double)mine - (double)top - row->excess;
    }
    row->value = plan->constant;
    row->own = row->rest = row->paired = 0;
    for (int i = 0; i < plan->count; i++) {
        const Part *part = &plan->parts[i];
        if (row->rivals < part->fewest || row->rivals > part->most) continue;
        int status = NAME(part)(row, part, &tables[i]);
        if (status != DONE) return status;
    }
    *value = (REAL)row->value;
    if (gradient == NULL) return DONE;
    REAL pull = (REAL)(row->by * (row->own + row->rest) * row->scale);
#pragma omp simd
    for (long k = 0; k < row->classes; k++) gradient[k] = sum[k] - pull * weight[k];
    gradient[row->label] = (REAL)(row->by * (row->own * row->q - row->rest * row->p - row->paired));
    return DONE;
}

/* Rescaled logits y = f z with f = length / (|z| + added) for |z| > above. The derivative by z of a
   loss with derivative g by y is f g - f (g z) / ((|z| + added) |z|) z. */
INLINE int NAME(rescale)(NAME(Row) * row, const Plan *plan, REAL *restrict room, double *length)
{
    const REAL *restrict z = row->z;
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (long k = 0; k < row->classes; k++) squares += (double)z[k] * (double)z[k];
    /* infinite logits, and squares that leave the range of double */
    if (!(squares < INFINITY) || (squares < 1e-290 && squares != 0)) return LOGITS;
    double norm = sqrt(squares);
    if (!(norm > plan->above)) return DONE;
    double factor = plan->length / (norm + plan->added);
#pragma omp simd
    for (long k = 0; k < row->classes; k++) room[k] = (REAL)(factor * z[k]);
    row->z = room;
    *length = norm;
    return DONE;
}

INLINE void NAME(rescale_gradient)(const REAL *restrict z, long classes, const Plan *plan,
                                   double norm, REAL *restrict gradient)
{
    double factor = plan->length / (norm + plan->added), along = 0;
#pragma omp simd reduction(+ : along)
    for (long k = 0; k < classes; k++) along += (double)gradient[k] * (double)z[k];
    double share = along / ((norm + plan->added) * norm); /* may leave the range of float */
#pragma omp simd
    for (long k = 0; k < classes; k++)
        gradient[k] = (REAL)(factor * (gradient[k] - share * z[k]));
}

CLONES static void NAME(rows)(Job *job, REAL *scratch, long padded)
{
    NAME(Row) row = {.classes = job->classes, .padded = padded, .by = job->by, .weight = scratch,
                     .sum = scratch + padded, .other = scratch + 2 * padded};
    REAL *room = scratch + 3 * padded;
    memset(scratch, 0, (size_t)(ARRAYS * padded) * sizeof(REAL));
    NAME(Table) tables[MOST_PARTS];
    for (int i = 0; i < job->plan->count; i++) NAME(fill)(&tables[i], &job->plan->parts[i]);
    for (long n = job->start; n < job->end; n++) {
        REAL *value = (REAL *)job->value + n;
        REAL *gradient = job->gradient ? (REAL *)job->gradient + n * job->classes : NULL;
        row.label = (long)job->target[n];
        row.z = (const REAL *)job->logits + n * job->classes;
        if (row.label < 0 || row.label >= job->classes) {
            job->status = LABEL;
            return;
        }
        const REAL *z = row.z;
        double norm = 0; /* of logits that are rescaled */
        int status = job->plan->length > 0 ? NAME(rescale)(&row, job->plan, room, &norm) : DONE;
        if (status == DONE) status = NAME(one)(&row, job->plan, tables, value, gradient);
        if (status == DONE && norm > 0 && gradient)
            NAME(rescale_gradient)(z, job->classes, job->plan, norm, gradient);
        if (status != DONE) {
            job->status = status;
            return;
        }
    }
}

static void NAME(work)(Job *job)
{
    long padded = (job->classes + PAD - 1) / PAD * PAD;
    REAL few[ARRAYS * BLOCK];
    REAL *scratch = padded <= BLOCK ? few : malloc((size_t)(ARRAYS * padded) * sizeof(REAL));
    if (scratch == NULL) {
        job->status = MEMORY;
        return;
    }
    NAME(rows)(job, scratch, padded);
    if (scratch != few) free(scratch);
}
