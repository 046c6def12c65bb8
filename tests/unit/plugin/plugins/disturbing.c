/* A plugin that changes the state of the loading thread at every opportunity. */
#include <opmux/abi.h>

#include <fenv.h>
#include <signal.h>

static void disturb(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  fesetround(FE_UPWARD);
}

__attribute__((constructor)) static void loaded(void) { disturb(); }

static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  (void)user_data;
  (void)host;
  (void)error;
  disturb();
  return OPMUX_OK;
}

OPMUX_PLUGIN_ENTRY(disturbing) {
  (void)host;
  disturb();
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->name = opmux_str_of("disturbing");
  out->init = init;
  return OPMUX_OK;
}
