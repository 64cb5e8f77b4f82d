/* SPDX-License-Identifier: Apache-2.0 */
/* PARSE_URL, by the rules of java.net.URL, which Flink asks, not by RFC 3986: only protocols that a
 * JVM knows are URLs, blanks and letters beyond ASCII are taken as they are, dots in a path stay,
 * and a host with two '@' in front is none. Nothing is decoded or copied: parts are spans of the
 * text. */
#include <arpa/inet.h>
#include <errno.h>
#include <strings.h>

#include "dataplane/expr/kernel_internal.h"

#define HOST_BYTES_MAX 64 /* of an IPv6 address in brackets */

/* A part that is not there has no data. */
struct url {
    struct span protocol;
    struct span authority;
    struct span user;
    struct span host;
    struct span path;
    struct span query;
    struct span file; /* path and query */
    struct span reference;
};

/* Those in front of mailto are read alike. */
static const char *const protocols[] = {"http", "https", "ftp",    "file",
                                        "jrt",  "jmod",  "mailto", "jar"};

enum protocol {
    PROTOCOL_MAILTO = 6,
    PROTOCOL_JAR,
    PROTOCOL_NONE,
};

static struct span between(struct span text, size_t from, size_t to)
{
    ASSERT_SLOW(from <= to && to <= text.bytes);
    return (struct span){.data = text.data + from, .bytes = to - from};
}

/* Where a byte stands first from a place on; the text's length when nowhere. */
static size_t find(struct span text, size_t from, uint8_t byte)
{
    ASSERT_SLOW(from <= text.bytes);
    const uint8_t *at =
        text.bytes == from ? NULL : memchr(text.data + from, byte, text.bytes - from);
    return at == NULL ? text.bytes : (size_t)(at - text.data);
}

static bool equals(struct span text, const char *word)
{
    ASSERT_SLOW(word != NULL);
    return text.bytes == strlen(word) && memcmp(text.data, word, text.bytes) == 0;
}

/* Blanks and control characters at both ends are not part of it, nor is "url:" in front. */
static struct span trim(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    while (text.bytes != 0 && text.data[text.bytes - 1] <= ' ') {
        text.bytes--;
    }
    while (text.bytes != 0 && text.data[0] <= ' ') {
        text = between(text, 1, text.bytes);
    }
    const bool marked = text.bytes >= 4 && strncasecmp((const char *)text.data, "url:", 4) == 0;
    return marked ? between(text, 4, text.bytes) : text;
}

/* The protocol in front of the first ':', which no '/' and no '#' precedes.
 * rest     set to what stands behind it */
static enum protocol protocol_read(struct span text, struct span *rest)
{
    ASSERT_SLOW(rest != NULL);
    const size_t colon = find(text, 0, ':');
    if (colon == text.bytes || find(text, 0, '/') < colon || find(text, 0, '#') < colon) {
        return PROTOCOL_NONE;
    }
    *rest = between(text, colon + 1, text.bytes);
    for (uint32_t i = 0; i < COUNT_OF(protocols); i++) {
        if (strlen(protocols[i]) == colon &&
            strncasecmp((const char *)text.data, protocols[i], colon) == 0) {
            return (enum protocol)i;
        }
    }
    return PROTOCOL_NONE;
}

/* A port as Integer.parseInt reads it: -1 is none, less is an error. */
static bool port_is_fine(struct span text)
{
    ASSERT_SLOW(text.data != NULL);
    int64_t port = 0;
    size_t at = 0;
    const bool negative = text.bytes > 1 && text.data[0] == '-';
    at += negative || (text.bytes > 1 && text.data[0] == '+');
    for (; at < text.bytes; at++) {
        if (text.data[at] < '0' || text.data[at] > '9') {
            return false;
        }
        port = port * 10 + (text.data[at] - '0');
        if (port > INT32_MAX) {
            return false;
        }
    }
    return !negative || port <= 1;
}

/* An IPv6 address stands in brackets, with a zone behind a '%' and a port behind them. */
static bool host_in_brackets(struct span text, struct span *host)
{
    ASSERT_SLOW(text.bytes != 0 && text.data[0] == '[');
    ASSERT_SLOW(host != NULL);
    const size_t close = find(text, 0, ']');
    char address[HOST_BYTES_MAX];
    struct in6_addr binary;
    if (close == text.bytes || close <= 2 || close > sizeof(address)) {
        return false;
    }
    const size_t zone = find(between(text, 0, close), 0, '%');
    memcpy(address, text.data + 1, zone - 1);
    address[zone - 1] = '\0';
    if (zone + 1 == close || inet_pton(AF_INET6, address, &binary) != 1) {
        return false;
    }
    *host = between(text, 0, close + 1);
    if (close + 1 == text.bytes) {
        return true;
    }
    return text.data[close + 1] == ':' &&
           (close + 2 == text.bytes || port_is_fine(between(text, close + 2, text.bytes)));
}

/* User, host and port; false when the URL is none. */
static bool authority_read(struct url *url)
{
    ASSERT_SLOW(url->authority.data != NULL);
    struct span text = url->authority;
    const size_t at = find(text, 0, '@');
    if (at != text.bytes) {
        if (find(text, at + 1, '@') != text.bytes) {
            return true;
        }
        url->user = between(text, 0, at);
        text = between(text, at + 1, text.bytes);
    }
    if (text.bytes != 0 && text.data[0] == '[') {
        return host_in_brackets(text, &url->host);
    }
    const size_t colon = find(text, 0, ':');
    url->host = between(text, 0, colon);
    return colon >= text.bytes - (text.bytes != 0) ||
           port_is_fine(between(text, colon + 1, text.bytes));
}

/* What stands behind the protocol of a URL of the net or of a file. */
static bool hierarchy_read(struct span rest, struct url *url)
{
    ASSERT_SLOW(url != NULL);
    const size_t mark = find(rest, 0, '?');
    const struct span front = between(rest, 0, mark);
    size_t start = 0;
    if (mark != rest.bytes) {
        url->query = between(rest, mark + 1, rest.bytes);
    }
    const bool is_unc = front.bytes >= 4 && memcmp(front.data, "////", 4) == 0;
    if (!is_unc && front.bytes >= 2 && memcmp(front.data, "//", 2) == 0) {
        start = find(front, 2, '/');
        url->authority = between(front, 2, start);
        if (!authority_read(url)) {
            return false;
        }
    }
    url->path = between(front, start, front.bytes);
    url->file = between(rest, start, rest.bytes);
    return true;
}

/* Reads a URL.
 * returns  false when it is none to Java */
static bool url_read(struct span text, struct url *url)
{
    ASSERT_SLOW(url != NULL);
    struct span rest;
    text = trim(text);
    *url = (struct url){.host = between(text, 0, 0)};
    const enum protocol protocol = protocol_read(text, &rest);
    if (protocol == PROTOCOL_NONE) {
        return false;
    }
    const char *name = protocols[protocol];
    url->protocol = (struct span){.data = (const uint8_t *)name, .bytes = strlen(name)};
    const size_t hash = find(rest, 0, '#');
    if (hash != rest.bytes) {
        url->reference = between(rest, hash + 1, rest.bytes);
        rest = between(rest, 0, hash);
    }
    if (protocol < PROTOCOL_MAILTO) {
        return hierarchy_read(rest, url);
    }
    /* These look for the query from the end. */
    size_t mark = rest.bytes;
    while (mark != 0 && rest.data[mark - 1] != '?') {
        mark--;
    }
    url->path = mark == 0 ? rest : between(rest, 0, mark - 1);
    url->query = mark == 0 ? (struct span){0} : between(rest, mark, rest.bytes);
    url->file = rest;
    if (protocol == PROTOCOL_MAILTO) {
        url->reference = (struct span){0};
        return trim(rest).bytes != 0;
    }
    struct url inner = {0};
    size_t bang = 0;
    for (size_t i = 1; i < rest.bytes; i++) {
        bang = rest.data[i - 1] == '!' && rest.data[i] == '/' ? i - 1 : bang;
    }
    /* One level is enough: a jar in a jar is a URL to nobody. */
    const struct span archive = between(rest, 0, bang);
    return bang != 0 && protocol_read(trim(archive), &rest) < PROTOCOL_MAILTO &&
           hierarchy_read(rest, &inner);
}

/* The value of the first key=value of a query; no data when there is none. */
static struct span query_value(struct span query, struct span key)
{
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    size_t at = 0;
    while (query.data != NULL && at <= query.bytes) {
        const size_t end = find(query, at, '&');
        const struct span pair = between(query, at, end);
        if (pair.bytes > key.bytes && pair.data[key.bytes] == '=' &&
            memcmp(pair.data, key.data, key.bytes) == 0) {
            return between(pair, key.bytes + 1, pair.bytes);
        }
        at = end + 1;
    }
    return (struct span){0};
}

static struct span part_of(const struct url *url, struct span name)
{
    ASSERT_SLOW(url->protocol.data != NULL);
    const struct {
        const char *name;
        struct span part;
    } parts[] = {
        {"HOST", url->host},     {"PATH", url->path},           {"QUERY", url->query},
        {"REF", url->reference}, {"PROTOCOL", url->protocol},   {"FILE", url->file},
        {"USERINFO", url->user}, {"AUTHORITY", url->authority},
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (equals(name, parts[i].name)) {
            return parts[i].part;
        }
    }
    return (struct span){0};
}

static void parse_url(struct kernel_run *run)
{
    ASSERT(run->in_count == 2 || run->in_count == 3);
    KERNEL_ROWS(run, {
        struct url url;
        struct span part = {0};
        if (url_read(run->in[0]->text[i], &url)) {
            part = part_of(&url, run->in[1]->text[i]);
        }
        if (run->in_count == 3) {
            const bool is_query = equals(run->in[1]->text[i], "QUERY");
            part = query_value(is_query ? part : (struct span){0}, run->in[2]->text[i]);
        }
        if (part.data == NULL) {
            kernel_null(run, i);
        } else {
            run->out->text[i] = part;
        }
    });
}

int text_url_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(out != NULL);
    if (call->expr->function != EXPR_PARSE_URL) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){.function = parse_url, .mode = KERNEL_STRICT};
    return 0;
}
