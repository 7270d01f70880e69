import { describe } from '@jest/globals';
import { CLUSTER } from './test-cluster.js';

/** Tests that need a cluster: `npm run test:kubernetes` finds one, or says how to get it. Without it they are skipped. */
export const describeInCluster = CLUSTER === '' ? describe.skip : describe;
