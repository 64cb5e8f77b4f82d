/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 and the SHA family over the bytes of a text, as lower-case hexadecimal digits.
 *
 * OpenSSL's EVP interface allocates when a digest begins, which a lane may not; so this file uses
 * the plain functions over a context on the stack. OpenSSL 3 calls those deprecated, yet has them,
 * and its fast code stands behind both. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <errno.h>
#include <openssl/md5.h>
#include <openssl/sha.h>

#include "dataplane/expr/kernel_internal.h"

typedef void digest_function(struct span text, uint8_t *into);

#define DIGEST(name, context_type, prefix)                                                         \
    static void name(struct span text, uint8_t *into)                                              \
    {                                                                                              \
        context_type context;                                                                      \
        ASSERT_SLOW(into != NULL);                                                                 \
        ASSERT_SLOW(text.data != NULL || text.bytes == 0);                                         \
        (void)prefix##_Init(&context);                                                             \
        (void)prefix##_Update(&context, text.data, text.bytes);                                    \
        (void)prefix##_Final(into, &context);                                                      \
    }

DIGEST(md5, MD5_CTX, MD5)
DIGEST(sha1, SHA_CTX, SHA1)
DIGEST(sha224, SHA256_CTX, SHA224)
DIGEST(sha256, SHA256_CTX, SHA256)
DIGEST(sha384, SHA512_CTX, SHA384)
DIGEST(sha512, SHA512_CTX, SHA512)

/* Digests every row's text and prints it. */
static void digest_rows(struct kernel_run *run, digest_function *digest, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    ASSERT(run->in_count == 1);
    ASSERT(bytes <= SHA512_DIGEST_LENGTH);
    KERNEL_ROWS(run, {
        uint8_t binary[SHA512_DIGEST_LENGTH];
        uint8_t *into = kernel_text(run, 2 * bytes);
        if (into == NULL) {
            return;
        }
        digest(run->in[0]->text[i], binary);
        for (size_t at = 0; at < bytes; at++) {
            into[2 * at] = (uint8_t)digits[binary[at] >> 4];
            into[2 * at + 1] = (uint8_t)digits[binary[at] & 15];
        }
        run->out->text[i] = (struct span){.data = into, .bytes = 2 * bytes};
    });
}

static void md5_rows(struct kernel_run *run)
{
    digest_rows(run, md5, MD5_DIGEST_LENGTH);
}

static void sha1_rows(struct kernel_run *run)
{
    digest_rows(run, sha1, SHA_DIGEST_LENGTH);
}

static void sha224_rows(struct kernel_run *run)
{
    digest_rows(run, sha224, SHA224_DIGEST_LENGTH);
}

static void sha256_rows(struct kernel_run *run)
{
    digest_rows(run, sha256, SHA256_DIGEST_LENGTH);
}

static void sha384_rows(struct kernel_run *run)
{
    digest_rows(run, sha384, SHA384_DIGEST_LENGTH);
}

static void sha512_rows(struct kernel_run *run)
{
    digest_rows(run, sha512, SHA512_DIGEST_LENGTH);
}

int text_digest_kernel(const struct kernel_call *call, struct kernel_choice *out,
                       struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(out != NULL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT] = {
        [EXPR_MD5] = md5_rows,       [EXPR_SHA1] = sha1_rows,     [EXPR_SHA224] = sha224_rows,
        [EXPR_SHA256] = sha256_rows, [EXPR_SHA384] = sha384_rows, [EXPR_SHA512] = sha512_rows,
    };
    kernel_function *function = kernels[call->expr->function];
    if (function == NULL) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){.function = function, .mode = KERNEL_STRICT};
    return 0;
}
