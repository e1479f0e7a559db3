# SPDX-License-Identifier: Apache-2.0
"""The parts of quern.torch: schemas and kernels, fake implementations, derivatives, the batch of vmap."""
