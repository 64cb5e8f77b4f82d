/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of Java and of SQL's SIMILAR TO, written anew for PCRE2. */
#pragma once

#include "base.h"

#define REGEX_TEXT_MAX 8192 /* bytes of a pattern, before and after */

/* Rewrites a Java pattern: \b and \B by Unicode letters and digits, \uXXXX, POSIX classes.
 * into     REGEX_TEXT_MAX bytes
 * returns  its bytes; 0 when the pattern is too long or uses what PCRE2 has no like of (why says)
 * threads  control */
size_t regex_from_java(struct span pattern, char *into, const char **why);

/* Rewrites a SIMILAR TO pattern; escape is a character or 0 for none.
 * into     REGEX_TEXT_MAX bytes
 * returns  as regex_from_java
 * threads  control */
size_t regex_from_similar(struct span pattern, uint8_t escape, char *into, const char **why);
