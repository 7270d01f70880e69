import { registerHooks } from 'node:module';

/**
 * Lets Node run TypeScript programs beside the service (demo, bench, Jest's global setup): Node strips types itself,
 * but a source names its neighbours `./x.js` as they are called once built. Decorators and parameter properties
 * cannot be stripped, so such programs reach the service as a process of its own.
 */
export function resolveTypescript() {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (/^\.{1,2}\/.*\.js$/.test(specifier) && !context.parentURL?.includes('/node_modules/')) {
        try {
          return nextResolve(specifier.replace(/\.js$/, '.ts'), context);
        } catch (error) {
          // A real .js file is resolved below.
          if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(error.code)) {
            throw error;
          }
        }
      }
      return nextResolve(specifier, context);
    },
  });
}
