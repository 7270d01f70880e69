/** What answers show in place of a secret; sent back, it means "unchanged". */
export const MASK = '**********';
