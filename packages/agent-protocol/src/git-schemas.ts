import { z } from 'zod';

/** A name that git takes and does not mistake for an option; the rules are in git-check-ref-format(1). */
export const branchSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^-\s~^:?*[\\\p{Cc}]([^\s~^:?*[\\\p{Cc}]*)$/u, 'is not a branch name');

/** Credential helpers speak a line-based protocol. */
const oneLine = z.string().regex(/^[^\p{Cc}]*$/u, 'must not have control characters');

const httpUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => new URL(url).username === '' && new URL(url).password === '', 'must not hold credentials');

const gitIdentitySchema = z.object({ name: oneLine.min(1).max(200), email: oneLine.min(1).max(320) });

export const gitAccessSchema = z.object({
  credentials: z.array(
    z.object({
      origin: httpUrl.transform((url) => new URL(url).origin),
      username: oneLine,
      password: oneLine.min(1),
    }),
  ),
  expose: z.boolean(),
  identity: gitIdentitySchema.nullable(),
});

export const gitPrepareSchema = z.object({
  url: httpUrl.nullable(),
  directory: z.string().min(1),
  branch: branchSchema.nullable(),
  new_branch: branchSchema.nullish(),
  username: oneLine.nullable(),
  password: oneLine.nullable(),
  identity: gitIdentitySchema.nullable(),
  submodules: z.boolean().nullish(),
  lfs: z.boolean().nullish(),
  timeout: z.number().positive().max(3600).default(600),
});

export type PrepareRequest = z.infer<typeof gitPrepareSchema>;

export const gitPushSchema = z.object({
  url: httpUrl,
  directory: z.string().min(1),
  branch: branchSchema.nullable(),
  username: oneLine.nullable(),
  password: oneLine.nullable(),
});

export type PushRequest = z.infer<typeof gitPushSchema>;
