/* SPDX-License-Identifier: Apache-2.0
 *
 * t525: the part of a host that uses LLVM by its C API and knows nothing of Quern; see t525-host-llvm.sh, which builds
 * it into a program or into a library that is opened late, with whatever LLVM there is. */
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int host_llvm_work(char *text, size_t size);
void host_llvm_handle(void);
void host_llvm_break(void);

static LLVMModuleRef parse(LLVMContextRef context) {
  static const char ir[] =
      "define i32 @f(i32 %x) {\n  %y = mul i32 %x, 6\n  %z = add i32 %y, 7\n  ret i32 %z\n}\n"
      "define double @g(double %x) {\n  %y = fmul double %x, %x\n  %z = fadd double %y, 1.0e-1\n  ret double %z\n}\n";
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, sizeof ir - 1, "ir");
  LLVMModuleRef module = NULL;
  char *why = NULL;
  if (LLVMParseIRInContext(context, buffer, &module, &why)) {
    fprintf(stderr, "%s\n", why);
    exit(3);
  }
  return module;
}

/* LLVM's list of targets has no lock of its own: two threads that register at once can make a circle of it. */
static void register_targets(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMLinkInMCJIT();
}

/* Makes an object of a module by a target machine of its own, and runs another copy of it: a text about both. */
int host_llvm_work(char *text, size_t size) {
  static pthread_once_t registered = PTHREAD_ONCE_INIT;
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = parse(context);
  LLVMTargetRef target = NULL;
  LLVMMemoryBufferRef object = NULL;
  LLVMExecutionEngineRef engine = NULL;
  char *why = NULL, *triple = LLVMGetDefaultTargetTriple();
  unsigned long long hash = 14695981039346656037ull;
  int n_targets = 0, result;
  pthread_once(&registered, register_targets);
  for (LLVMTargetRef t = LLVMGetFirstTarget(); t; t = LLVMGetNextTarget(t)) n_targets++;
  if (LLVMGetTargetFromTriple(triple, &target, &why)) return 4;
  LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, triple, "x86-64", "", LLVMCodeGenLevelDefault,
                                                         LLVMRelocPIC, LLVMCodeModelDefault);
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &why, &object)) return 5;
  const char *bytes = LLVMGetBufferStart(object);
  const size_t n = LLVMGetBufferSize(object);
  for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211ull;
  struct LLVMMCJITCompilerOptions options;
  LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
  if (LLVMCreateMCJITCompilerForModule(&engine, parse(context), &options, sizeof options, &why)) return 6;
  union {
    unsigned long long address;
    int (*f)(int);
  } f = {LLVMGetFunctionAddress(engine, "f")};
  result = f.f(11);
  snprintf(text, size, "%d targets, an object of %zu bytes, %llx, f(11) = %d", n_targets, n, hash, result);
  LLVMDisposeExecutionEngine(engine);
  LLVMDisposeMemoryBuffer(object);
  LLVMDisposeTargetMachine(machine);
  LLVMDisposeMessage(triple);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  return 0;
}

static void handler(const char *reason) {
  printf("the host's handler: %s\n", reason);
  fflush(stdout);
  _exit(42);
}

void host_llvm_handle(void) {
  LLVMInstallFatalErrorHandler(handler);
}

/* LLVM ends the process over this, or calls its handler. */
void host_llvm_break(void) {
  LLVMModuleRef module = LLVMModuleCreateWithName("broken");
  LLVMValueRef function = LLVMAddFunction(module, "f", LLVMFunctionType(LLVMVoidType(), NULL, 0, 0));
  LLVMAppendBasicBlock(function, "without an end");
  LLVMVerifyModule(module, LLVMAbortProcessAction, NULL);
}
