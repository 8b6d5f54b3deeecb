#include <winsock2.h>
#include <ndspi.h>
#include <stdio.h>
#include "report.h"

void ReportAdapter(const ND2_ADAPTER_INFO *info)
{
    printf("  id                  %016I64x\n", info->AdapterId);
    printf("  registration        %Iu bytes\n", info->MaxRegistrationSize);
    printf("  transfer            %u bytes\n", (unsigned)info->MaxTransferLength);
    printf("  inline              %u bytes\n", (unsigned)info->MaxInlineDataSize);
    printf("  completion queue    %u results\n", (unsigned)info->MaxCompletionQueueDepth);
    printf("  caller, callee data %u, %u bytes\n", (unsigned)info->MaxCallerData, (unsigned)info->MaxCalleeData);
}
