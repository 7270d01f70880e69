import { CreateSchema1766300000000 } from './migrations/1766300000000-create-schema.js';

/**
 * Every migration, oldest first. Listed by name, so that a reviewer sees here what runs. A released one is never
 * edited: the databases that have it would stay as they are.
 */
export const MIGRATIONS = [CreateSchema1766300000000];
