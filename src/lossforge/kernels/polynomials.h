/* Parts of a row whose density is a polynomial; included by rows.h for REAL float and double. */

#define FAR 40 /* a label's logit that lies so far below the largest needs its own exponentials */

/* In the precision of the row; those near 0 in powers of near_stretch p - 1, the others of 2p - 1. */
typedef struct {
    REAL density[MOST_TERMS], up[MOST_TERMS], down[MOST_TERMS];
    REAL near_stretch, near_density[NEAR], near_up[NEAR];
} NAME(Table);

static void NAME(fill)(NAME(Table) * table, const Part *part)
{
    const double *up = part->table + part->terms, *down = up + part->means;
    memset(table, 0, sizeof(*table));
    for (int k = 0; k < part->terms; k++) table->density[k] = (REAL)part->table[k];
    for (int k = 0; k < part->means; k++) {
        table->up[k] = (REAL)up[k];
        table->down[k] = (REAL)(k % 2 ? -down[k] : down[k]); /* of p, as the density is */
    }
    if (part->reach == 0) return;
    table->near_stretch = (REAL)(2 / part->reach);
    for (int k = 0; k < NEAR; k++) {
        table->near_density[k] = (REAL)part->near[k];
        table->near_up[k] = (REAL)part->near[NEAR + k];
    }
}

/* A polynomial in s, even and odd powers apart: two short dependent chains instead of a long one. */
INLINE REAL NAME(polynomial)(const REAL *powers, const int terms, const int even, REAL s, REAL square)
{
    const int last = terms - 1, top = last - last % 2;
    REAL sum = powers[top];
#pragma GCC unroll 16
    for (int k = top - 2; k >= 0; k -= 2) sum = sum * square + powers[k];
    if (even || last == 0) return sum;
    const int odd = last - (last + 1) % 2;
    REAL other = powers[odd];
#pragma GCC unroll 16
    for (int k = odd - 2; k >= 0; k -= 2) other = other * square + powers[k];
    return other * s + sum;
}

/* Some of the classes beside the label: the sums of H(u) and of the slopes. */
INLINE void NAME(others_of_block)(const REAL *restrict weight, REAL *restrict sum, long classes,
                                  REAL scale, REAL factor, REAL stretch, const REAL *density,
                                  const int terms, const int even, const REAL *up, const int means,
                                  double *value, double *slopes)
{
    REAL v = 0, d = 0;
#pragma omp simd reduction(+ : v, d)
    for (long k = 0; k < classes; k++) {
        REAL u = weight[k] * scale, s = stretch * u - 1, square = s * s;
        REAL slope = u * NAME(polynomial)(density, terms, even, s, square);
        v += u * NAME(polynomial)(up, means, 0, s, square);
        d += slope;
        sum[k] += factor * slope;
    }
    *value += v;
    *slopes += d;
}

INLINE void NAME(others_of_terms)(NAME(Row) * row, const Part *part, const NAME(Table) * table,
                                  const int terms, const int even, const int means)
{
    double each = NAME(factor_of)(row, part), value = 0, slopes = 0;
    REAL scale = (REAL)row->scale, factor = (REAL)(row->by * each);
    /* a probability is at most that of the largest logit, and that of all rivals together */
    const int all_near = row->scale <= part->reach || row->q <= part->reach;
    for (long start = 0; start < row->padded; start += BLOCK) {
        long classes = row->padded - start < BLOCK ? row->padded - start : BLOCK;
        const REAL *restrict weight = row->weight + start;
        REAL most = 0;
        if (part->reach > 0 && !all_near) {
#pragma omp simd reduction(max : most)
            for (long k = 0; k < classes; k++) most = weight[k] > most ? weight[k] : most;
        }
        if (part->reach > 0 && most * row->scale <= part->reach)
            NAME(others_of_block)(weight, row->sum + start, classes, scale, factor,
                                  table->near_stretch, table->near_density, NEAR, 0, table->near_up,
                                  NEAR, &value, &slopes);
        else
            NAME(others_of_block)(weight, row->sum + start, classes, scale, factor, 2,
                                  table->density, terms, even, table->up, means, &value, &slopes);
    }
    row->value += each * value;
    row->rest += each * slopes;
}

INLINE void NAME(pairs_of_terms)(NAME(Row) * row, const Part *part, const NAME(Table) * table,
                                 const int terms, const int even, const int means)
{
    const REAL *density = table->density, *down = table->down;
    REAL *restrict sum = row->sum;
    double each = NAME(factor_of)(row, part), value = 0, slopes = 0;
    const int far = row->top - (double)row->z[row->label] > FAR;
    /* p = own both is left out of the loop; its factor `own` counts at the end */
    REAL own = far ? 1 : (REAL)row->own_weight, factor = (REAL)(row->by * each * own);
    const REAL *restrict weight = row->weight;
    if (far) { /* odds exp(-|z_i - z_t|), with the sign of the difference in `other` */
        REAL *restrict gap = row->other;
        for (long k = 0; k < row->classes; k++) gap[k] = row->z[k] - row->z[row->label];
        for (long k = row->classes; k < row->padded; k++) gap[k] = -INFINITY;
        gap[row->label] = -INFINITY;
    }
    const REAL *restrict gap = row->other;
    for (long start = 0; start < row->padded; start += BLOCK) {
        long end = row->padded - start < BLOCK ? row->padded : start + BLOCK;
        REAL v = 0, d = 0;
        if (far) {
#pragma omp simd reduction(+ : v, d)
            for (long k = start; k < end; k++) {
                REAL odds = NAME(exponential)(gap[k] > 0 ? -gap[k] : gap[k]);
                REAL large = 1 / (1 + odds), small = odds * large;
                REAL q = gap[k] > 0 ? large : small, p = gap[k] > 0 ? small : large;
                REAL s = 2 * p - 1, square = s * s;
                REAL slope = p * q * NAME(polynomial)(density, terms, even, s, square);
                v += q * NAME(polynomial)(down, means, 0, s, square);
                d += slope;
                sum[k] += factor * slope;
            }
        } else {
#pragma omp simd reduction(+ : v, d)
            for (long k = start; k < end; k++) {
                REAL both = 1 / (own + weight[k]), q = weight[k] * both;
                REAL s = 1 - 2 * q, square = s * s;
                REAL slope = both * q * NAME(polynomial)(density, terms, even, s, square);
                v += q * NAME(polynomial)(down, means, 0, s, square);
                d += slope;
                sum[k] += factor * slope;
            }
        }
        value += v;
        slopes += d;
    }
    row->value += each * value;
    row->paired += each * own * slopes;
}

/* Loops over a polynomial of known length are unrolled; shorter ones are filled up with zeros. The
   lengths are those that published parameters need in single and in double precision. */
#define FOR_TERMS(function, row, part, table)                                                       \
    do {                                                                                            \
        const int single = sizeof(REAL) == 4, even = part->even;                                    \
        const int terms = part->terms, means = part->means;                                         \
        if (terms <= 1 && means <= 1) function(row, part, table, 1, 0, 1);                          \
        else if (terms <= 3 && means <= 3) function(row, part, table, 3, 0, 3);                     \
        else if (single && even && terms <= 9 && means <= 9) function(row, part, table, 9, 1, 9);   \
        else if (single && terms <= 7 && means <= 7) function(row, part, table, 7, 0, 7);           \
        else if (single && even && terms <= 13 && means <= 13) function(row, part, table, 13, 1, 13); \
        else if (single && terms <= 9 && means <= 9) function(row, part, table, 9, 0, 9);           \
        else if (terms <= 12 && means <= 11) function(row, part, table, 12, 0, 11);                 \
        else if (even && terms <= 17 && means <= 17) function(row, part, table, 17, 1, 17);         \
        else if (terms <= 18 && means <= 18) function(row, part, table, 18, 0, 18);                 \
        else function(row, part, table, MOST_TERMS, 0, MOST_TERMS);                                 \
    } while (0)

#undef FAR
