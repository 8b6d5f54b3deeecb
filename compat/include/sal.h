/* SPDX-License-Identifier: MIT */
#ifndef _SAL_H_
#define _SAL_H_

/* Annotation words of the second generation (SAL2): all expand to nothing. Those of the first generation collide with
 * the system's headers and live in specstrings.h. Source: win32-surface.md section 3.1. */

#define _In_
#define _In_opt_
#define _In_z_
#define _In_opt_z_
#define _In_range_(...)
#define _In_reads_(...)
#define _In_reads_opt_(...)
#define _In_reads_z_(...)
#define _In_reads_bytes_(...)
#define _In_reads_bytes_opt_(...)
#define _In_reads_or_z_(...)
#define _In_count_(...)
#define _In_opt_count_(...)
#define _In_bytecount_(...)
#define _In_opt_bytecount_(...)
#define _In_bytecount_c_(...)
#define _In_function_class_(...)

#define _Out_
#define _Out_opt_
#define _Out_range_(...)
#define _Out_writes_(...)
#define _Out_writes_opt_(...)
#define _Out_writes_z_(...)
#define _Out_writes_opt_z_(...)
#define _Out_writes_to_(...)
#define _Out_writes_to_opt_(...)
#define _Out_writes_all_(...)
#define _Out_writes_all_opt_(...)
#define _Out_writes_bytes_(...)
#define _Out_writes_bytes_opt_(...)
#define _Out_writes_bytes_to_(...)
#define _Out_writes_bytes_to_opt_(...)
#define _Out_writes_bytes_all_(...)
#define _Out_cap_(...)
#define _Out_opt_cap_(...)
#define _Out_bytecap_(...)
#define _Out_opt_bytecap_(...)
#define _Out_cap_post_count_(...)
#define _Out_opt_cap_post_count_(...)
#define _Out_bytecap_post_bytecount_(...)
#define _Out_opt_bytecap_post_bytecount_(...)

#define _Inout_
#define _Inout_opt_
#define _Inout_z_
#define _Inout_updates_(...)
#define _Inout_updates_opt_(...)
#define _Inout_updates_to_(...)
#define _Inout_updates_all_(...)
#define _Inout_updates_bytes_(...)
#define _Inout_updates_bytes_opt_(...)
#define _Inout_updates_bytes_to_(...)
#define _Inout_bytecount_(...)
#define _Inout_opt_bytecount_(...)

#define _Outptr_
#define _Outptr_opt_
#define _Outptr_result_maybenull_
#define _Outptr_opt_result_maybenull_
#define _Outptr_result_z_
#define _Outptr_result_nullonfailure_
#define _Outptr_result_buffer_(...)
#define _Outptr_result_bytebuffer_(...)
#define _COM_Outptr_
#define _COM_Outptr_opt_
#define _COM_Outptr_result_maybenull_
#define _Outref_
#define _Deref_out_
#define _Deref_out_opt_
#define _Deref_opt_out_
#define _Deref_out_range_(...)
#define _Deref_inout_
#define _Deref_pre_z_
#define _Deref_post_z_

#define _Ret_
#define _Ret_valid_
#define _Ret_z_
#define _Ret_notnull_
#define _Ret_null_
#define _Ret_maybenull_
#define _Ret_range_(...)
#define _Ret_writes_(...)
#define _Ret_writes_bytes_(...)
#define _Ret_opt_bytecap_(...)

#define _Pre_
#define _Pre_satisfies_(...)
#define _Pre_valid_
#define _Pre_notnull_
#define _Pre_maybenull_
#define _Post_
#define _Post_satisfies_(...)
#define _Post_valid_
#define _Post_invalid_
#define _Post_notnull_
#define _Post_equal_to_(...)
#define _Post_ptr_invalid_
#define _Field_size_(...)
#define _Field_size_opt_(...)
#define _Field_size_part_(...)
#define _Field_size_bytes_(...)
#define _Field_size_bytes_opt_(...)
#define _Field_range_(...)
#define _Field_z_
#define _Struct_size_bytes_(...)

#define _Success_(...)
#define _When_(...)
#define _At_(...)
#define _On_failure_(...)
#define _Always_(...)
#define _Group_(...)
#define _Check_return_
#define _Must_inspect_result_
#define _Maybenull_
#define _Notnull_
#define _Null_
#define _Null_terminated_
#define _NullNull_terminated_
#define _Reserved_
#define _Const_
#define _Frees_ptr_
#define _Frees_ptr_opt_
#define _Points_to_data_
#define _Printf_format_string_
#define _Scanf_format_string_
#define _Use_decl_annotations_
#define _Analysis_noreturn_
#define _Analysis_assume_(...) ((void)0)
#define _Analysis_assume_nullterminated_(...)
#define _Acquires_lock_(...)
#define _Releases_lock_(...)
#define _Requires_lock_held_(...)
#define _Requires_lock_not_held_(...)
#define _Acquires_exclusive_lock_(...)
#define _Releases_exclusive_lock_(...)
#define _Acquires_shared_lock_(...)
#define _Releases_shared_lock_(...)
#define _Guarded_by_(...)
#define _Interlocked_operand_
#define _IRQL_requires_(...)
#define _IRQL_requires_max_(...)
#define _IRQL_requires_min_(...)
#define _IRQL_requires_same_
#define _Function_class_(...)
#define _Callback_
#define __analysis_assume(...) ((void)0)

#endif
