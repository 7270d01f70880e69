import { defineConfig } from 'vite';

const SERVICE = 'http://127.0.0.1:3000';

export default defineConfig(({ command }) => ({
  // Files name each other, and the service writes the whole addresses into the page: it may be below a path.
  base: command === 'build' ? './' : '/console/',
  build: {
    // Browsers that know light-dark() and nested rules.
    target: ['chrome123', 'firefox125', 'safari17.5'],
    // The page may load nothing but files, so nothing is written into it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.txt' },
    rolldownOptions: {
      // Libraries mark what runs in the browser; all of this does.
      onLog: (level, log, print) => (log.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : print(level, log)),
    },
  },
  server: {
    proxy: {
      '/api': SERVICE,
      '/auth': SERVICE,
      '/oauth': SERVICE,
      '/health': SERVICE,
      '/server_info': SERVICE,
    },
  },
}));
