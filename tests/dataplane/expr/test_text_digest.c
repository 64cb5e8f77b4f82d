/* SPDX-License-Identifier: Apache-2.0 */
/* Digests: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"MD5('')", "d41d8cd98f00b204e9800998ecf8427e"},
    {"MD5('abc')", "900150983cd24fb0d6963f7d28e17f72"},
    {"SHA1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {"SHA224('abc')", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
    {"SHA256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"SHA384('abc')", "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7"
                      "cc2358baeca134c825a7"},
    {"SHA512('abc')", "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274f"
                      "c1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    {"SHA2('abc', 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"SHA2('abc', 512)", "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a2"
                         "74fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    {"SHA2('é', 224)", "33dd9448e5538d16ddc6df32dd7f16240cac6cb5238c1c22cb33ae66"},
    {"MD5(CAST(NULL AS STRING))", NULL},
    {"SHA256(REPEAT('a', 1000))",
     "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"},
};

static void test_text_digest_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_digest_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
