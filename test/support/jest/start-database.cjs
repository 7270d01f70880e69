require('./typescript-loader.cjs');

/** Jest calls what this file exports once, before the tests that need a database. */
module.exports = async () => {
  const { startTestServer } = require('../test-server.ts');
  globalThis.slipwayTestServer ??= await startTestServer();
};
