/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: DLPack's table of device types. See device.h. */
#include "core/tensor/device.h"

#include <stdio.h>

typedef struct device_type {
  const char *name;
  uint8_t joins; /* the device type that can use this host memory; 0: none */
} device_type;

static const device_type device_types[] = {
    [kDLCPU] = {"cpu", 0}, [kDLCUDA] = {"cuda", 0}, [kDLCUDAHost] = {"cuda_host", kDLCUDA}, [kDLOpenCL] = {"opencl", 0},
    [kDLVulkan] = {"vulkan", 0}, [kDLMetal] = {"metal", 0}, [kDLVPI] = {"vpi", 0}, [kDLROCM] = {"rocm", 0},
    [kDLROCMHost] = {"rocm_host", kDLROCM}, [kDLExtDev] = {"ext_dev", 0}, [kDLCUDAManaged] = {"cuda_managed", kDLCUDA},
    [14] = {"oneapi", 0}, [15] = {"webgpu", 0}, [16] = {"hexagon", 0}, [17] = {"maia", 0}, [18] = {"trn", 0},
};

/* The row of a device's type; NULL: DLPack 1.3 has no such type. */
static const device_type *type_of(DLDevice device) {
  const int type = (int)device.device_type;
  return type > 0 && type < (int)(sizeof device_types / sizeof device_types[0]) && device_types[type].name ? &device_types[type]
                                                                                                           : NULL;
}

const char *qn_device_text(DLDevice device, char text[QN_DEVICE_CHARS]) {
  const device_type *type = type_of(device);
  const int id = (int)device.device_id;
  if (!type)
    snprintf(text, QN_DEVICE_CHARS, "device_%d:%d", (int)device.device_type, id);
  else if (device.device_type == kDLCPU && id == 0)
    snprintf(text, QN_DEVICE_CHARS, "%s", type->name);
  else
    snprintf(text, QN_DEVICE_CHARS, "%s:%d", type->name, id);
  return text;
}

int qn_device_joins(DLDevice device) {
  const device_type *type = type_of(device);
  return type ? type->joins : 0;
}
