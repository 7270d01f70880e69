const { buildIfNeeded } = require('../../../scripts/lib/build.mjs');
const startDatabase = require('./start-database.cjs');

/** System tests run the built service as its users do, so the build has to be that of these sources. */
module.exports = async () => {
  if (!buildIfNeeded()) {
    throw new Error('the sources do not compile, so there is nothing for the system tests to run');
  }
  await startDatabase();
};
