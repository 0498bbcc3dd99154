#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "cli/brokers/find_calls.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

/// The build sets TXINBOX_CLI_PLUGINS to the way from the folder of the command to that of its plugins. So an installed
/// tree can be moved.
std::filesystem::path plugin_file(std::string_view component) {
  std::error_code error;
  const auto command = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    throw UsageError("txinbox looks for its plugins beside its program, whose folder /proc names; mount /proc");
  return (command.parent_path() / TXINBOX_CLI_PLUGINS / fmt::format("txinbox-{}.so", component)).lexically_normal();
}

/// The Debian package with the plugin. Those that need only small libraries are in the package of the command.
std::string package_of(std::string_view component) {
  return component == "http" || component == "redis" ? "txinbox" : fmt::format("txinbox-{}", component);
}

}  // namespace

const BrokerCalls& find_calls(std::string_view component) {
  const auto file = plugin_file(component);
  if (!std::filesystem::exists(file)) {
    throw UsageError(fmt::format(
        "the plugin for {} is not installed: there is no file {}; build txinbox with {}, or on Debian: apt install {}",
        component, file.string(), build_option(component), package_of(component)));
  }
  // It is never closed: its functions are in use until the process ends.
  void* const plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr)
    throw UsageError(fmt::format("the plugin for {} cannot be loaded: {}", component, ::dlerror()));
  const std::string name = fmt::format("txinbox_broker_{}", component);
  const auto find = reinterpret_cast<FindBrokerCalls>(::dlsym(plugin, name.c_str()));
  if (find == nullptr) throw UsageError(fmt::format("the file {} is not a plugin of txinbox", file.string()));
  const BrokerCalls& calls = *find();
  if (std::string_view(calls.version) != compiled_version) {
    throw UsageError(
        fmt::format("the plugin {} has version {}, but this is txinbox {}: install both in the same version",
                    file.string(), calls.version, compiled_version));
  }
  return calls;
}

}  // namespace txinbox::cli
