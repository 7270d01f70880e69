require('../../../scripts/lib/typescript-loader.cjs');

/** Jest calls what this file exports once, before the tests that need a database. */
module.exports = async () => {
  // Imported, as tests in this process import the same sources: a `require` would pass Jest's own compiler and make
  // second copies of them.
  const { startTestServer } = await import('../test-server.ts');
  globalThis.slipwayTestServer ??= await startTestServer();
};
