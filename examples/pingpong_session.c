/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "pingpong.h"

#define MAGIC   0x6e647070 /* "ndpp" */
#define VERSION 1

void pp_session_from_options(struct pp_session *session, const struct pp_options *options)
{
    *session = (struct pp_session){
        .op = options->op,
        .wait = options->wait,
        .server = options->server,
        .verify = options->verify,
        .notify = options->wait != PP_POLL,
        .depth = options->depth,
        .inline_size = options->inline_size,
    };
    for (unsigned int i = 0; i < options->size_count; i++) {
        if (options->sizes[i] > session->max_size)
            session->max_size = options->sizes[i];
    }
}

void pp_hello_fill(struct pp_hello *hello, const struct pp_session *session, bool notify, uint64_t address,
                   uint32_t token)
{
    *hello = (struct pp_hello){
        .magic = htonl(MAGIC),
        .version = VERSION,
        .op = (uint8_t)session->op,
        .wait = (uint8_t)session->wait,
        .flags = (uint8_t)((session->verify ? PP_FLAG_VERIFY : 0) | (notify ? PP_FLAG_NOTIFY : 0)),
        .depth = htonl(session->depth),
        .max_size = htonl(session->max_size),
        .inline_size = htonl(session->inline_size),
        .token = token,
        .address = htobe64(address),
    };
}

const char *pp_hello_read(const void *data, size_t length, struct pp_session *session)
{
    struct pp_hello hello;

    /* Longer is right: some transports pad. */
    if (length < sizeof(hello))
        return "it sent too little private data";
    memcpy(&hello, data, sizeof(hello));
    if (hello.magic != htonl(MAGIC))
        return "it is no ping-pong client";
    if (hello.version != VERSION)
        return "it is of another version";
    *session = (struct pp_session){
        .op = (enum pp_op)hello.op,
        .wait = (enum pp_wait)hello.wait,
        .server = true,
        .verify = (hello.flags & PP_FLAG_VERIFY) != 0,
        .notify = (hello.flags & PP_FLAG_NOTIFY) != 0,
        .window = (hello.flags & PP_FLAG_WINDOW) != 0,
        .depth = ntohl(hello.depth),
        .max_size = ntohl(hello.max_size),
        .inline_size = ntohl(hello.inline_size),
        .remote_address = be64toh(hello.address),
        .remote_token = hello.token,
    };
    if (hello.op > PP_READ || hello.wait > PP_RESULT || !session->depth || session->depth > PP_MAX_DEPTH ||
        session->max_size > 1u << 30)
        return "it asks for something unknown";
    return NULL;
}

void pp_welcome_fill(struct pp_welcome *welcome, bool notify, uint64_t address, uint32_t token)
{
    *welcome = (struct pp_welcome){
        .magic = htonl(MAGIC),
        .version = VERSION,
        .flags = notify ? PP_FLAG_NOTIFY : 0,
        .token = token,
        .address = htobe64(address),
    };
}

const char *pp_welcome_read(const void *data, size_t length, struct pp_session *session)
{
    struct pp_welcome welcome;

    if (length < sizeof(welcome))
        return "it sent too little private data";
    memcpy(&welcome, data, sizeof(welcome));
    if (welcome.magic != htonl(MAGIC))
        return "it is no ping-pong server";
    if (welcome.version != VERSION)
        return "it is of another version";
    session->remote_address = be64toh(welcome.address);
    session->remote_token = welcome.token;
    session->notify |= (welcome.flags & PP_FLAG_NOTIFY) != 0;
    session->window = (welcome.flags & PP_FLAG_WINDOW) != 0;
    return NULL;
}
