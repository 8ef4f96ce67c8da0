# Finds LibTorch without its own TorchConfig, which stops on a machine that has no CUDA toolkit.
# Looked for in order: LibTorch_ROOT (a variable or the environment), the checkout's .venv, the
# active Python. Defines LibTorch::LibTorch, LibTorch_VERSION and LibTorch_DIR.

set(_candidates)
if(LibTorch_ROOT)
  list(APPEND _candidates ${LibTorch_ROOT})
endif()
if(DEFINED ENV{LibTorch_ROOT})
  list(APPEND _candidates $ENV{LibTorch_ROOT})
endif()
file(GLOB _venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3.*/site-packages/torch)
list(APPEND _candidates ${_venv})
if(NOT _candidates)
  execute_process(
    COMMAND python3 -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE _python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND _candidates ${_python_torch})
endif()

find_path(LibTorch_DIR NAMES include/torch/csrc/api/include/torch/version.h
  PATHS ${_candidates} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
if(LibTorch_DIR)
  # Moved between releases; the older place includes the newer one.
  set(_version_file ${LibTorch_DIR}/include/torch/csrc/api/include/torch/version.h)
  if(EXISTS ${LibTorch_DIR}/include/torch/headeronly/version.h)
    set(_version_file ${LibTorch_DIR}/include/torch/headeronly/version.h)
  endif()
  file(STRINGS ${_version_file} _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" LibTorch_VERSION "${_lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${LibTorch_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_DIR VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run tools/setup, or set LibTorch_ROOT to a folder that has include/ and lib/")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_DIR}/include ${LibTorch_DIR}/include/torch/csrc/api/include)
  target_link_directories(LibTorch::LibTorch INTERFACE ${LibTorch_DIR}/lib)
  target_link_libraries(LibTorch::LibTorch INTERFACE torch_cpu c10)
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,-rpath,${LibTorch_DIR}/lib)
endif()
