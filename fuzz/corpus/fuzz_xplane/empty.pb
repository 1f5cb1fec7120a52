
É	/host:CPUMpythonˆ'"MemoryAllocation"MemoryDeallocation*allocator_name*bytes_allocated*peak_bytes_in_use*requested_bytes*allocation_bytes*addr*	tf_op*	GPU_0_bfc*		profile_start_time*


id*	data_type*	shapesome events were dropped"host