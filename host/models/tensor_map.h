// CPU model of device/tensor_map.cuh: what the engine makes of such a parameter.
using TensorMap = jitconv_host_tensor_map;
