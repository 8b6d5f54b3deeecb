/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_LIST_H
#define NDVERBS_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Circular intrusive list. A node that is in no list points to itself, so unlinking twice is harmless and
 * "is it still linked" is one compare: the question that decides who completes a request. */
struct list {
    struct list *next, *prev;
};

#define list_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *node)
{
    node->next = node->prev = node;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool list_linked(const struct list *node)
{
    return node->next != node;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
    node->next = head;
    node->prev = head->prev;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_add_head(struct list *head, struct list *node)
{
    list_add_tail(head->next, node);
}

static inline void list_del(struct list *node)
{
    node->next->prev = node->prev;
    node->prev->next = node->next;
    list_init(node);
}

static inline struct list *list_pop(struct list *head)
{
    struct list *node = head->next;

    if (node == head)
        return NULL;
    list_del(node);
    return node;
}

/* Moves every node of `from` to the tail of `to`. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_for_each(node, head) for (struct list *node = (head)->next; node != (head); node = node->next)
#define list_for_each_safe(node, head)                                                \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head); \
         node = node##_next, node##_next = node->next)

#endif
