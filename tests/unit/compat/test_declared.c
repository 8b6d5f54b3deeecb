/* SPDX-License-Identifier: MIT */
#include <stdio.h>

extern const struct {
    const char *name;
    const void *symbol;
} declared[];
extern const unsigned declared_count;

/* Linking is the test; the run only counts. */
int main(void)
{
    unsigned missing = 0;

    for (unsigned i = 0; i < declared_count; i++) {
        if (!declared[i].symbol) {
            printf("FAIL %s\n", declared[i].name);
            missing++;
        }
    }
    printf("%u passed, %u failed, 0 skipped\n", declared_count - missing, missing);
    return missing || declared_count < 50;
}
