import { CreateSchema1766300000000 } from './migrations/1766300000000-create-schema.js';
import { AddAutomations1766400000000 } from './migrations/1766400000000-add-automations.js';
import { BoundStoredBytes1766530000000 } from './migrations/1766530000000-bound-stored-bytes.js';
import { RememberBodiesAndLimits1766540000000 } from './migrations/1766540000000-remember-bodies-and-limits.js';
import { KeepChanges1766550000000 } from './migrations/1766550000000-keep-changes.js';
import { AddCheckoutSettings1766560000000 } from './migrations/1766560000000-add-checkout-settings.js';

/** Oldest first, listed for reviewers. A released one is never edited: databases that have it would not change. */
export const MIGRATIONS = [
  CreateSchema1766300000000,
  AddAutomations1766400000000,
  BoundStoredBytes1766530000000,
  RememberBodiesAndLimits1766540000000,
  KeepChanges1766550000000,
  AddCheckoutSettings1766560000000,
];
