# Installs libgleaner.so and the programs for the wheel (pyproject.toml), in the component `python`. The root of the
# installation is the Python package, and the programs are in its folder bin.
#
# A wheel cannot hold symbolic links, so libgleaner.so has only this name there.
set_property(TARGET gleaner_shared PROPERTY VERSION)
set_property(TARGET gleaner_shared PROPERTY SOVERSION)
set_target_properties(gleaner PROPERTIES INSTALL_RPATH "$ORIGIN/..")
install(TARGETS gleaner_shared LIBRARY DESTINATION . COMPONENT python)
install(TARGETS gleaner gleaner-summer gleaner-cluster RUNTIME DESTINATION bin COMPONENT python)
