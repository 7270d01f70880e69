const { registerHooks } = require('node:module');

/**
 * Lets Jest's global setup require the sources: Jest compiles them, but uses its resolver (`jest-resolver.cjs`, the
 * same rule) only for tests.
 */
exports.resolveTypescript = () => {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (/^\.{1,2}\/.*\.js$/.test(specifier) && !context.parentURL?.includes('/node_modules/')) {
        try {
          return nextResolve(specifier.replace(/\.js$/, '.ts'), context);
        } catch {
          // A real .js file: resolved below.
        }
      }
      return nextResolve(specifier, context);
    },
  });
};
