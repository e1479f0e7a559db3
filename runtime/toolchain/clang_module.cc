/* SPDX-License-Identifier: Apache-2.0
 *
 * clang_module.cc: Clang and LLVM behind the C functions of clang_module.h: one C text in, one object file out,
 * everything in memory. The only C++ file; becomes quern-clang.so. Knows neither kernels nor the library that opens it.
 *
 * Clang's driver and its back-end glue are left out, because they change process-wide state (options, timers, signal
 * handlers) that a host with an LLVM of its own would notice. No file is opened, nothing is printed. */
#include "toolchain/clang_module.h"
#include "level_flags.h" // generated

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/Stack.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Parse/Parser.h>
#include <clang/Sema/EnterExpressionEvaluationContext.h>
#include <clang/Sema/Sema.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/BDCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimpleLoopUnswitch.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

using namespace clang;

namespace {

// ---- Levels and arguments ----

const char TRIPLE[] = "x86_64-unknown-linux-gnu";
const char CPU[] = "x86-64";

struct Level {
  const char *name;
  const char *flags;
  llvm::TargetMachine *machines[2]; // by lane; made at the level's first request; never deleted: they may be needed until the process ends
};

Level levels[] = {
  {"generic", QN_FLAGS_GENERIC, {}},
  {"v2", QN_FLAGS_V2, {}},
  {"v3", QN_FLAGS_V3, {}},
  {"v4", QN_FLAGS_V4, {}},
};

Level *level_named(const char *name) {
  for (Level &level : levels) {
    if (!std::strcmp(level.name, name)) return &level;
  }
  return nullptr;
}

// Whether a flag such as -mavx2 names a CPU feature (avx2); -mNAME=VALUE is an option of Clang.
bool is_feature(llvm::StringRef flag) { return flag.consume_front("-m") && !flag.contains('='); }

std::vector<llvm::StringRef> flags_of(const Level &level) {
  llvm::SmallVector<llvm::StringRef, 32> flags;
  llvm::StringRef(level.flags).split(flags, ' ', /*MaxSplit*/ -1, /*KeepEmpty*/ false);
  return {flags.begin(), flags.end()};
}

const char SOURCE[] = "kernel.c";

// Arguments of Clang's cc1, which has other defaults than the driver: math sets no errno and raises no exceptions; no unwind
// tables, no stack protector, no frame pointer. PIE code (-pic-is-pie) needs no global offset table.
std::vector<std::string> arguments(const Level &level) {
  std::vector<std::string> args = {
    "-triple", TRIPLE, "-target-cpu", CPU, "-tune-cpu", "generic",
    "-x", "c", "-std=gnu11", "-ffreestanding", "-nostdsysteminc", "-nobuiltininc", "-DQ_NO_PACK", "-DNDEBUG",
    "-O3", "-ffp-contract=off", "-fno-jump-tables",
    "-mrelocation-model", "pic", "-pic-level", "2", "-pic-is-pie",
    // for the compiler's speed
    "-w", "-ferror-limit", "1", "-Qn", "-discard-value-names", "-disable-lifetime-markers", "-relaxed-aliasing",
  };
  for (llvm::StringRef flag : flags_of(level)) {
    if (is_feature(flag)) args.push_back("-target-feature");
    args.push_back(is_feature(flag) ? "+" + flag.drop_front(2).str() : flag.str());
  }
  args.push_back(SOURCE);
  return args;
}

// ---- Words ----

void say(quern_clang_request *request, llvm::StringRef text) {
  std::snprintf(request->why, request->why_size, "%.*s", (int)text.size(), text.data());
}

// Keeps the first error: "kernel.c:12:3: ..."
class FirstError : public DiagnosticConsumer {
public:
  explicit FirstError(quern_clang_request *request) : request(request) {}

  void HandleDiagnostic(DiagnosticsEngine::Level level, const Diagnostic &diagnostic) override {
    DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
    if (level < DiagnosticsEngine::Error || is_there) return;
    is_there = true;
    llvm::SmallString<256> text;
    if (diagnostic.hasSourceManager() && diagnostic.getLocation().isValid()) {
      const PresumedLoc place = diagnostic.getSourceManager().getPresumedLoc(diagnostic.getLocation());
      if (place.isValid()) {
        llvm::StringRef file = place.getFilename();
        file = file.substr(file.rfind('/') + 1);
        text += (file + ":" + llvm::Twine(place.getLine()) + ":" + llvm::Twine(place.getColumn()) + ": ").str();
      }
    }
    diagnostic.FormatDiagnostic(text);
    say(request, text);
  }

private:
  quern_clang_request *request;
  bool is_there = false;
};

// Receives LLVM's diagnostics of a module. Without a handler LLVM prints them, and exits on an error.
class Complaints : public llvm::DiagnosticHandler {
public:
  explicit Complaints(quern_clang_request *request) : request(request) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error || HasErrors) return true;
    HasErrors = true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    say(request, stream.str());
    return true;
  }

private:
  quern_clang_request *request;
};

// ---- From text to a module ----

// The tokens of a translation unit without unused declarations of the headers: lexing all tokens costs 1 ms, parsing them
// 7 ms. A piece is a declaration or definition outside of functions, or a pragma. It declares the names in it that are
// outside of brackets and have not occurred before.
std::vector<Token> needed_tokens(Preprocessor &pp) {
  struct Piece {
    size_t begin, end;
    bool is_taken;
  };
  const SourceManager &sources = pp.getSourceManager();
  std::vector<Token> tokens;
  std::vector<Piece> pieces;
  std::vector<size_t> to_search;
  llvm::DenseMap<const IdentifierInfo *, llvm::SmallVector<size_t, 1>> pieces_of;
  llvm::SmallVector<const IdentifierInfo *, 8> names, new_names;
  tokens.reserve(16384);
  size_t begin = 0;
  unsigned depth = 0;
  bool is_body = false;
  do {
    Token token;
    pp.Lex(token);
    const size_t i = tokens.size();
    tokens.push_back(token);
    if (depth == 0 && token.is(tok::identifier)) {
      const IdentifierInfo *name = token.getIdentifierInfo();
      names.push_back(name);
      if (!pieces_of.count(name)) new_names.push_back(name);
    }
    if (token.isOneOf(tok::l_paren, tok::l_square, tok::l_brace)) {
      if (depth == 0) is_body = token.is(tok::l_brace) && i > begin && tokens[i - 1].is(tok::r_paren);
      depth++;
    } else if (depth > 0 && token.isOneOf(tok::r_paren, tok::r_square, tok::r_brace)) {
      depth--;
    }
    const bool ends = depth == 0 && (token.isOneOf(tok::semi, tok::eof) || token.isAnnotation() ||
                                     (is_body && token.is(tok::r_brace)));
    if (!ends && token.isNot(tok::eof)) continue;
    const bool is_taken =
        tokens[begin].isAnnotation() || token.is(tok::eof) ||
        sources.getFileID(sources.getExpansionLoc(tokens[begin].getLocation())) == sources.getMainFileID();
    if (is_taken) to_search.push_back(pieces.size());
    for (const IdentifierInfo *name : new_names.empty() ? names : new_names) pieces_of[name].push_back(pieces.size());
    pieces.push_back({begin, i + 1, is_taken});
    names.clear();
    new_names.clear();
    is_body = false;
    begin = i + 1;
  } while (tokens.back().isNot(tok::eof));

  while (!to_search.empty()) {
    const Piece piece = pieces[to_search.back()];
    to_search.pop_back();
    for (size_t i = piece.begin; i < piece.end; i++) {
      if (tokens[i].isNot(tok::identifier)) continue;
      const auto found = pieces_of.find(tokens[i].getIdentifierInfo());
      if (found == pieces_of.end()) continue;
      for (size_t k : found->second) {
        if (!pieces[k].is_taken) to_search.push_back(k);
        pieces[k].is_taken = true;
      }
      found->second.clear();
    }
  }
  std::vector<Token> needed;
  for (const Piece &piece : pieces) {
    if (piece.is_taken) needed.insert(needed.end(), tokens.begin() + piece.begin, tokens.begin() + piece.end);
  }
  return needed;
}

void parse(CompilerInstance &compiler, bool is_pruned) {
  Preprocessor &pp = compiler.getPreprocessor();
  Sema &sema = compiler.getSema();
  ASTConsumer &consumer = compiler.getASTConsumer();
  Parser parser(pp, sema, /*SkipFunctionBodies*/ false); // made before the tokens are read: it installs the handlers of pragmas
  std::vector<Token> tokens;
  pp.EnterMainSourceFile();
  if (is_pruned) {
    tokens = needed_tokens(pp);
    pp.EnterTokenStream(tokens, /*DisableMacroExpansion*/ true, /*IsReinject*/ false);
  }
  parser.Initialize();
  EnterExpressionEvaluationContext context(sema, Sema::ExpressionEvaluationContext::PotentiallyEvaluated);
  Parser::DeclGroupPtrTy group;
  Sema::ModuleImportState state;
  for (bool is_end = parser.ParseFirstTopLevelDecl(group, state); !is_end;
       is_end = parser.ParseTopLevelDecl(group, state)) {
    if (group && !consumer.HandleTopLevelDecl(group.get())) return;
  }
  consumer.HandleTranslationUnit(compiler.getASTContext());
}

// Whether the request's lane is at a safe point, in a function of the host: while the process forks it does not go on from there.
std::atomic<bool> is_at_point[2];

const char *ask_host(const quern_clang_request *request) {
  is_at_point[request->lane] = true;
  const char *why = request->is_over(request);
  is_at_point[request->lane] = false;
  return why;
}

// Safe points while Clang reads.
class Points : public PPCallbacks {
public:
  explicit Points(const quern_clang_request *request) : request(request) {}
  void MacroExpands(const Token &, const MacroDefinition &, SourceRange, const MacroArgs *) override {
    if (n++ % 16 == 0) ask_host(request);
  }
  void MacroDefined(const Token &, const MacroDirective *) override {
    if (n++ % 16 == 0) ask_host(request);
  }

private:
  const quern_clang_request *request;
  unsigned n = 0;
};

std::unique_ptr<llvm::Module> front_end(quern_clang_request *request, const Level &level, llvm::LLVMContext &context,
                                        bool is_pruned) {
  FirstError first_error(request);
  CompilerInstance compiler;
  compiler.createDiagnostics(&first_error, /*ShouldOwnClient*/ false);
  const std::vector<std::string> args = arguments(level);
  std::vector<const char *> pointers;
  for (const std::string &arg : args) pointers.push_back(arg.c_str());
  if (!CompilerInvocation::CreateFromArgs(compiler.getInvocation(), pointers, compiler.getDiagnostics()))
    return nullptr;

  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  files->addFile(SOURCE, 0, llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(request->source, request->size), SOURCE));
  for (int32_t i = 0; i < request->n_headers; i++) {
    const qn_kernel_header &header = request->headers[i];
    files->addFileNoOwn(header.name, 0, llvm::MemoryBufferRef(header.text, header.name));
  }
  compiler.createFileManager(files);
  compiler.createSourceManager(compiler.getFileManager());
  if (!compiler.createTarget()) return nullptr;
  compiler.createPreprocessor(TU_Complete);
  Preprocessor &pp = compiler.getPreprocessor();
  pp.addPPCallbacks(std::make_unique<Points>(request));
  pp.getBuiltinInfo().initializeBuiltins(pp.getIdentifierTable(), compiler.getLangOpts());
  compiler.createASTContext();
  CodeGenerator *generator = CreateLLVMCodeGen(compiler.getDiagnostics(), SOURCE, files, compiler.getHeaderSearchOpts(),
                                               compiler.getPreprocessorOpts(), compiler.getCodeGenOpts(), context);
  compiler.setASTConsumer(std::unique_ptr<ASTConsumer>(generator));
  compiler.createSema(TU_Complete, /*CompletionConsumer*/ nullptr);
  if (!compiler.InitializeSourceManager(FrontendInputFile(SOURCE, Language::C))) return nullptr;
  first_error.BeginSourceFile(compiler.getLangOpts(), &pp);
  parse(compiler, is_pruned);
  first_error.EndSourceFile();
  if (compiler.getDiagnostics().hasErrorOccurred()) return nullptr;
  return std::unique_ptr<llvm::Module>(generator->ReleaseModule());
}

// ---- From a module to an object ----

llvm::TargetMachine *machine_of(Level &level, int lane) {
  if (level.machines[lane]) return level.machines[lane];
  std::string why, features;
  for (llvm::StringRef flag : flags_of(level)) {
    if (is_feature(flag)) features += (features.empty() ? "+" : ",+") + flag.drop_front(2).str();
  }
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(TRIPLE, why);
  if (!target) return nullptr;
  level.machines[lane] = target->createTargetMachine(TRIPLE, CPU, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                              llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive);
  return level.machines[lane];
}

// Ends a compile early: skips all remaining optional passes once the host asks for the end (is_over).
class Gate : public llvm::OptPassGate {
public:
  explicit Gate(const quern_clang_request *request) : request(request) {}
  bool shouldRunPass(llvm::StringRef, llvm::StringRef) override { return !ask_host(request); }
  bool isEnabled() const override { return true; }

private:
  const quern_clang_request *request;
};

// Makes registers of arrays that are vectors by now, those of strips, and simplifies a function that had some.
struct ArraysPass : llvm::PassInfoMixin<ArraysPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    llvm::PreservedAnalyses kept = llvm::SROAPass(llvm::SROAOptions::ModifyCFG).run(function, analyses);
    if (kept.areAllPreserved()) return kept;
    analyses.invalidate(function, kept);
    llvm::FunctionPassManager rest;
    rest.addPass(llvm::EarlyCSEPass());
    rest.addPass(llvm::InstCombinePass());
    kept.intersect(rest.run(function, analyses));
    return kept;
  }
};

// The passes of -O3 that the loops of kernels need. Measured against all of -O3: code of the same speed in two thirds of
// the compile time.
void optimise(llvm::Module &module, llvm::TargetMachine *machine, const quern_clang_request *request) {
  using namespace llvm;
  PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback([request](StringRef, Any) { return !ask_host(request); });
  PassBuilder builder(machine, PipelineTuningOptions(), std::nullopt, &callbacks);
  LoopAnalysisManager of_loop;
  FunctionAnalysisManager of_function;
  CGSCCAnalysisManager of_component;
  ModuleAnalysisManager of_module;
  builder.registerModuleAnalyses(of_module);
  builder.registerCGSCCAnalyses(of_component);
  builder.registerFunctionAnalyses(of_function);
  builder.registerLoopAnalyses(of_loop);
  builder.crossRegisterProxies(of_loop, of_function, of_component, of_module);

  // The functions of the headers become small before they are inlined.
  FunctionPassManager small, loops;
  small.addPass(SROAPass(SROAOptions::ModifyCFG));
  small.addPass(EarlyCSEPass());
  small.addPass(InstCombinePass());
  loops.addPass(SROAPass(SROAOptions::ModifyCFG));
  loops.addPass(EarlyCSEPass());
  loops.addPass(SimplifyCFGPass());
  loops.addPass(InstCombinePass());
  loops.addPass(BDCEPass());
  LoopPassManager shape;
  shape.addPass(LoopRotatePass());
  shape.addPass(LICMPass(LICMOptions()));
  shape.addPass(SimpleLoopUnswitchPass(/*NonTrivial*/ true)); // on conditions over parameters and broadcast values
  loops.addPass(createFunctionToLoopPassAdaptor(std::move(shape), /*UseMemorySSA*/ true));
  loops.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass()));
  loops.addPass(LoopVectorizePass());
  loops.addPass(InstCombinePass());
  loops.addPass(SimplifyCFGPass(SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  loops.addPass(ArraysPass());
  loops.addPass(SLPVectorizerPass()); // vectorises what the loop vectoriser left scalar in loops with table lookups

  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(small)));
  passes.addPass(AlwaysInlinerPass(/*InsertLifetime*/ false));
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(loops)));
  passes.run(module, of_module);
}

bool emit(llvm::Module &module, llvm::TargetMachine *machine, llvm::SmallVectorImpl<char> &object) {
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                   /*DisableVerify*/ true)) {
    return false;
  }
  passes.run(module);
  return true;
}

quern_clang_result compile_here(quern_clang_request *request) {
  Level *level = level_named(request->level);
  say(request, "");
  noteBottomOfStack();
  if (request->is_to_fail) llvm::report_fatal_error("asked for by QUERN_TEST_COMPILER");
  llvm::TargetMachine *machine = level ? machine_of(*level, request->lane) : nullptr;
  if (!machine) {
    say(request, "Clang cannot compile for this level");
    return QUERN_CLANG_REFUSED;
  }
  Gate gate(request);
  llvm::LLVMContext context;
  context.setOptPassGate(gate);
  context.setDiscardValueNames(true);
  context.setDiagnosticHandler(std::make_unique<Complaints>(request));
  std::unique_ptr<llvm::Module> module = front_end(request, *level, context, true);
  // After an error the whole text is compiled, so that the message is about it.
  if (!module) module = front_end(request, *level, context, false);
  if (!module) return QUERN_CLANG_REFUSED;
  module->setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> object;
  optimise(*module, machine, request);
  const bool is_emitted = !ask_host(request) && emit(*module, machine, object);
  if (const char *why = ask_host(request)) {
    say(request, why);
    return QUERN_CLANG_REFUSED;
  }
  if (!is_emitted || context.getDiagHandlerPtr()->HasErrors) {
    if (!request->why[0]) say(request, "LLVM makes no object files for this machine");
    return QUERN_CLANG_REFUSED;
  }
  request->object = request->allocate(object.size());
  if (!request->object) {
    say(request, "no memory for the object");
    return QUERN_CLANG_REFUSED;
  }
  std::memcpy(request->object, object.data(), object.size());
  request->object_size = object.size();
  return QUERN_CLANG_DONE;
}

// ---- Trouble ----

const quern_clang_host *hosts[32];
pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER; // guards hosts
pthread_mutex_t turns[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}; // by lane; held by the request that is compiled
std::atomic<bool> is_busy[2], is_broken;
thread_local const quern_clang_host *served; // the host this thread compiles for
thread_local int served_lane;

// Libraries by handle, the address that they pass when they register a destructor (__dso_handle). They are listed by one
// thread while the module is opened. Later an unknown handle counts as not LLVM's: dladdr could wait for a thread that
// waits for this one.
struct Library {
  void *handle;
  bool is_llvm;
};
Library libraries[64];
size_t n_libraries;
bool are_libraries_known;

// Whether LLVM is linked into this module itself, not into libraries of its own.
bool is_llvm_inside() {
  Dl_info ours, llvms;
  return dladdr(reinterpret_cast<void *>(is_llvm_inside), &ours) &&
         dladdr(reinterpret_cast<void *>(llvm::remove_fatal_error_handler), &llvms) && ours.dli_fbase == llvms.dli_fbase;
}

bool is_of_llvm(void *handle) {
  Dl_info info;
  for (size_t i = 0; i < n_libraries; i++) {
    if (libraries[i].handle == handle) return libraries[i].is_llvm;
  }
  if (are_libraries_known || n_libraries == 64 || !handle || !dladdr(handle, &info) || !info.dli_fname) return false;
  const char *slash = std::strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
  const bool is_llvm = !std::strncmp(name, "libLLVM", 7) || !std::strncmp(name, "libclang", 8) ||
                       (!std::strncmp(name, "quern-clang", 11) && is_llvm_inside());
  libraries[n_libraries++] = {handle, is_llvm};
  return is_llvm;
}

// Blocks the compiling thread for good: LLVM would end the process if this returned.
void park(const char *message) {
  is_broken = true;
  pthread_mutex_unlock(&turns[served_lane]);
  served->failed(message);
  for (;;) pause();
}

void print(const char *text) {
  (void)!write(STDERR_FILENO, text, std::strlen(text));
}

// On threads that do not compile for a host these two act as LLVM does without handlers.
void on_fatal_error(void *, const char *message, bool) {
  if (served) park(message);
  print("LLVM ERROR: ");
  print(message);
  print("\n");
}

void on_bad_alloc(void *, const char *message, bool) {
  if (served) park(message);
  print("LLVM ERROR: out of memory\n");
  print(message);
  print("\n");
  std::abort();
}

void at_exit() {
  for (const quern_clang_host *&at : hosts) {
    pthread_mutex_lock(&listing);
    const quern_clang_host *host = at;
    pthread_mutex_unlock(&listing);
    if (host) host->ending();
  }
}

// Called repeatedly: LLVM may register destructors while it compiles, and at_exit has to run before them.
void watch_exit() {
  static std::atomic<int> n;
  if (n < 16 && std::atexit(at_exit) == 0) n++;
}

// A forked child has neither the compiling thread nor the holders of locks.
void after_fork_in_child() {
  for (int lane = 0; lane < 2; lane++) {
    if (is_busy[lane] && !is_at_point[lane]) is_broken = true;
    if (is_busy[lane]) // that compile is gone, and with it what its machine was used for
      for (Level &level : levels) level.machines[lane] = nullptr;
    is_busy[lane] = is_at_point[lane] = false;
  }
  turns[0] = turns[1] = listing = PTHREAD_MUTEX_INITIALIZER;
}

void start() {
  are_libraries_known = true;
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser(); // for inline assembly
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  watch_exit();
}

// Never removed: a later user of the same LLVM may have installed handlers of its own.
void set_handlers() {
  llvm::install_fatal_error_handler(on_fatal_error);
  llvm::install_bad_alloc_error_handler(on_bad_alloc);
}

// Replaces an entry of the list. 0: `from` is not in it.
int replace(const quern_clang_host *from, const quern_clang_host *to) {
  for (const quern_clang_host *&at : hosts) {
    if (at != from) continue;
    at = to;
    return 1;
  }
  return 0;
}

int enter(const quern_clang_host *host) {
  static bool is_started, has_handlers;
  pthread_mutex_lock(&listing);
  const int is_in = replace(nullptr, host);
  if (!is_started) start();
  is_started = true;
  const bool is_shared = host->is_shared && !is_llvm_inside();
  if (!is_shared && !has_handlers) set_handlers();
  has_handlers |= !is_shared;
  pthread_mutex_unlock(&listing);
  return is_in;
}

void leave(const quern_clang_host *host) {
  pthread_mutex_lock(&listing);
  replace(host, nullptr);
  pthread_mutex_unlock(&listing);
}

quern_clang_result compile(quern_clang_request *request) {
  quern_clang_result result = QUERN_CLANG_BROKEN;
  const int lane = served_lane = request->lane;
  pthread_mutex_lock(&turns[lane]);
  if (is_broken) {
    say(request, "Clang failed before, and cannot go on");
  } else {
    is_busy[lane] = true;
    served = request->host;
    watch_exit();
    try {
      result = compile_here(request);
    } catch (...) { // LLVM is built without exceptions: its state is undefined now
      say(request, "Clang ran out of memory");
      is_broken = true;
    }
    served = nullptr;
    is_busy[lane] = false;
  }
  pthread_mutex_unlock(&turns[lane]);
  return result;
}

std::atomic<bool> is_dropping;

int drops_destructors() { return is_dropping; }

} // namespace

// Drops the destructors of LLVM's static objects: the process may exit on another thread while the module is being opened
// or compiles, and LLVM makes some of these objects only then. LLVM's libraries bind this function before libc's
// (RTLD_DEEPBIND); calls of other libraries are passed on. Without RTLD_DEEPBIND the exit handler waits for the compile,
// which covers all but a process that exits during its first compile.
extern "C" __attribute__((visibility("default"))) int __cxa_atexit(void (*destructor)(void *), void *object,
                                                                   void *library) noexcept {
  using Function = int(void (*)(void *), void *, void *);
  static Function *next;
  if (!next) next = reinterpret_cast<Function *>(dlsym(RTLD_NEXT, "__cxa_atexit"));
  const bool is_ours = reinterpret_cast<void *>(destructor) == reinterpret_cast<void *>(at_exit);
  if (!is_ours && is_of_llvm(library)) {
    is_dropping = true;
    return 0;
  }
  return next ? next(destructor, object, library) : -1;
}

extern "C" __attribute__((visibility("default"))) const quern_clang_interface quern_clang_module;
const quern_clang_interface quern_clang_module = {QUERN_CLANG_ABI, QUERN_CLANG_VERSION, enter, leave, compile, drops_destructors};
