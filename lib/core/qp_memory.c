/* SPDX-License-Identifier: MIT */
#include "qp_priv.h"

typedef bool (*slot_test)(const struct slot *slot, uint32_t lkey);

static bool names(const struct slot *slot, uint32_t lkey)
{
    return slot->spare == lkey || slot->spare == SLOT_KEYS_MANY || slot->spare == SLOT_KEYS_BAD;
}

static bool names_for_window(const struct slot *slot, uint32_t lkey)
{
    return (slot->type == Nd2RequestTypeBind || slot->type == Nd2RequestTypeInvalidate) && slot->spare == lkey;
}

/* Does a request that the device still has name this key, or name keys that its slot does not tell? */
static bool queue_names(struct queue *queue, uint32_t lkey, slot_test test)
{
    bool found = false;

    wordlock_lock(&queue->lock);
    for (uint32_t i = __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE); i != queue->head && !found; i++)
        found = test(&queue->slots[i & queue->mask], lkey);
    wordlock_unlock(&queue->lock);
    return found;
}

/* A QP in error is on its way to give everything back already. */
static bool qp_names(struct qp *qp, uint32_t lkey, slot_test test)
{
    return !__atomic_load_n(&qp->err, __ATOMIC_ACQUIRE) &&
           (queue_names(&qp->rq, lkey, test) || queue_names(&qp->sq, lkey, test));
}

/* With a reference, or NULL. The look itself needs none: device->lock is held, and a record takes itself out of the list
 * before it goes. */
static struct qp *find_user(struct adapter *adapter, uint32_t lkey, slot_test test)
{
    struct device *device = adapter->device;
    struct qp *user = NULL;

    pthread_mutex_lock(&device->lock);
    list_for_each (node, &device->qps) {
        struct qp *qp = list_entry(node, struct device_link, link)->self;

        if (qp->adapter == adapter && qp_names(qp, lkey, test))
            user = qp_ref_live(qp);
        if (user)
            break;
    }
    pthread_mutex_unlock(&device->lock);
    return user;
}

/* One at a time, since a QP must not be failed with the list's lock held; each is in error or names the key no more afterwards, so
 * this ends. */
void qp_fail_users(struct adapter *adapter, uint32_t lkey)
{
    struct qp *user;

    while ((user = find_user(adapter, lkey, names)) != NULL) {
        qp_collect(user);
        if (qp_names(user, lkey, names))
            qp_flush(user);
        qp_unref(user);
    }
}

bool qp_window_under_way(struct adapter *adapter, uint32_t lkey)
{
    bool found = false;
    struct qp *user;

    while (!found && (user = find_user(adapter, lkey, names_for_window)) != NULL) {
        qp_collect(user);
        found = qp_names(user, lkey, names_for_window);
        qp_unref(user);
    }
    return found;
}
