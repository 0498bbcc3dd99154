# Finds the SDK of OpenTelemetry C++, with the exporters that the tests and the services of examples/chain use:
#
#   OpenTelemetrySdk_FOUND, OpenTelemetrySdk::sdk
#
# It looks beside the API, which pkg-config has found for the component opentelemetry. The SDK may be built for a newer
# system than this one (tests/get_newer.sh). Then its libraries need symbols that the linker does not find here, and the
# programs run with the libraries of that system.
set(libraries "")
foreach(
  name IN
  ITEMS trace
        metrics
        resources
        common
        version
        exporter_in_memory
        exporter_otlp_http)
  find_library(OpenTelemetrySdk_${name}_LIBRARY opentelemetry_${name} HINTS ${TXINBOX_OPENTELEMETRY_CLIENT_LIBRARY_DIRS})
  mark_as_advanced(OpenTelemetrySdk_${name}_LIBRARY)
  list(APPEND libraries OpenTelemetrySdk_${name}_LIBRARY)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenTelemetrySdk REQUIRED_VARS ${libraries})
if(OpenTelemetrySdk_FOUND AND NOT TARGET OpenTelemetrySdk::sdk)
  add_library(OpenTelemetrySdk::sdk INTERFACE IMPORTED GLOBAL)
  foreach(library IN LISTS libraries)
    target_link_libraries(OpenTelemetrySdk::sdk INTERFACE ${${library}})
  endforeach()
  target_link_libraries(OpenTelemetrySdk::sdk INTERFACE PkgConfig::TXINBOX_OPENTELEMETRY_CLIENT)
  target_link_options(OpenTelemetrySdk::sdk INTERFACE -Wl,--allow-shlib-undefined)
endif()
