/* SPDX-License-Identifier: Apache-2.0 */
/* Mathematics on DOUBLE. Nothing here fails: outside of its domain a function gives NaN, the
 * logarithm of zero -Infinity. Last digits are those of the C library, which rounds correctly
 * nearly always, as Java's StrictMath does. */
#include <errno.h>
#include <math.h>

#include "dataplane/expr/kernel_internal.h"

#define RADIANS_PER_DEGREE 0.017453292519943295
#define DEGREES_PER_RADIAN 57.29577951308232

#define MATH(name, expression)                                                                     \
    static void name##_run(struct kernel_run *run)                                                 \
    {                                                                                              \
        const double *restrict in = run->in[0]->f64;                                               \
        double *restrict out = run->out->f64;                                                      \
        KERNEL_ROWS(run, {                                                                         \
            const double x = in[i];                                                                \
            out[i] = expression;                                                                   \
        });                                                                                        \
    }
MATH(square_root, sqrt(x))
MATH(exponential, exp(x))
MATH(logarithm, log(x))
MATH(logarithm_10, log10(x))
MATH(logarithm_2, log(x) / log(2.0))
MATH(sine, sin(x))
MATH(cosine, cos(x))
MATH(tangent, tan(x))
MATH(cotangent, 1.0 / tan(x))
MATH(arc_sine, asin(x))
MATH(arc_cosine, acos(x))
MATH(arc_tangent, atan(x))
MATH(hyperbolic_sine, sinh(x))
MATH(hyperbolic_cosine, cosh(x))
MATH(hyperbolic_tangent, tanh(x))
MATH(degrees, x *DEGREES_PER_RADIAN)
MATH(radians, x *RADIANS_PER_DEGREE)

/* Math.pow of Java: a base of 1 with NaN or an infinite exponent is NaN there. */
static double java_power(double base, double exponent)
{
    const bool odd = isnan(exponent) || (isinf(exponent) && fabs(base) == 1.0);
    return odd && exponent != 0 ? NAN : pow(base, exponent);
}

#define MATH_TWO(name, expression)                                                                 \
    static void name##_run(struct kernel_run *run)                                                 \
    {                                                                                              \
        const double *restrict first = run->in[0]->f64;                                            \
        const double *restrict second = run->in[1]->f64;                                           \
        double *restrict out = run->out->f64;                                                      \
        KERNEL_ROWS(run, {                                                                         \
            const double x = first[i];                                                             \
            const double y = second[i];                                                            \
            out[i] = expression;                                                                   \
        });                                                                                        \
    }
MATH_TWO(power, java_power(x, y))
MATH_TWO(arc_tangent_2, atan2(x, y))
MATH_TWO(logarithm_base, log(y) / log(x))

int math_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT] = {
        [EXPR_SQRT] = square_root_run,
        [EXPR_EXP] = exponential_run,
        [EXPR_LN] = logarithm_run,
        [EXPR_LOG10] = logarithm_10_run,
        [EXPR_LOG2] = logarithm_2_run,
        [EXPR_SIN] = sine_run,
        [EXPR_COS] = cosine_run,
        [EXPR_TAN] = tangent_run,
        [EXPR_COT] = cotangent_run,
        [EXPR_ASIN] = arc_sine_run,
        [EXPR_ACOS] = arc_cosine_run,
        [EXPR_ATAN] = arc_tangent_run,
        [EXPR_SINH] = hyperbolic_sine_run,
        [EXPR_COSH] = hyperbolic_cosine_run,
        [EXPR_TANH] = hyperbolic_tangent_run,
        [EXPR_DEGREES] = degrees_run,
        [EXPR_RADIANS] = radians_run,
        [EXPR_POWER] = power_run,
        [EXPR_ATAN2] = arc_tangent_2_run,
    };
    const struct expr *expr = call->expr;
    kernel_function *function = kernels[expr->function];
    if (expr->function == EXPR_LOG) {
        function = expr->argument_count == 2 ? logarithm_base_run : logarithm_run;
    }
    if (function == NULL) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){.function = function, .mode = KERNEL_TOTAL};
    return 0;
}
