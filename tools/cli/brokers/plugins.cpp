#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "cli/brokers/find_calls.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

/// The build sets TXINBOX_CLI_PLUGINS to the way from the folder of the command to that of its plugins. So an installed
/// tree can be moved.
std::filesystem::path plugin_file(std::string_view component) {
  const auto command = std::filesystem::read_symlink("/proc/self/exe");
  return (command.parent_path() / TXINBOX_CLI_PLUGINS / fmt::format("txinbox-{}.so", component)).lexically_normal();
}

}  // namespace

const BrokerCalls& find_calls(std::string_view component) {
  const auto file = plugin_file(component);
  if (!std::filesystem::exists(file)) {
    throw UsageError(
        fmt::format("the plugin for {} is not installed: there is no file {}; on Debian: apt install "
                    "txinbox-{}",
                    component, file.string(), component));
  }
  // It is never closed: its functions are in use until the process ends.
  void* const plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr)
    throw std::runtime_error(fmt::format("the plugin for {} cannot be loaded: {}", component, ::dlerror()));
  const std::string name = fmt::format("txinbox_broker_{}", component);
  const auto find = reinterpret_cast<FindBrokerCalls>(::dlsym(plugin, name.c_str()));
  if (find == nullptr) throw std::runtime_error(fmt::format("the file {} is not a plugin of txinbox", file.string()));
  const BrokerCalls& calls = *find();
  if (std::string_view(calls.version) != compiled_version) {
    throw std::runtime_error(
        fmt::format("the plugin {} has version {}, but this is txinbox {}: install both in the same version",
                    file.string(), calls.version, compiled_version));
  }
  return calls;
}

}  // namespace txinbox::cli
