/** Sources import './x.js' (ESM); on disk it is './x.ts'. Packages keep the default resolution. */
module.exports = (request, options) => {
  if (/^\.{1,2}\/.*\.js$/.test(request) && !options.basedir.includes('node_modules')) {
    try {
      return options.defaultResolver(request.replace(/\.js$/, '.ts'), options);
    } catch {
      // A real .js file: resolved below.
    }
  }
  return options.defaultResolver(request, options);
};
