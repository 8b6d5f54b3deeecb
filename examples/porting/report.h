#pragma once

#include <ndspi.h>

#ifdef __cplusplus
extern "C" {
#endif

void ReportAdapter(const ND2_ADAPTER_INFO *info);

#ifdef __cplusplus
}
#endif
