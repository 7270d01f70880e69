import type { Command } from '@commander-js/extra-typings';

/** Texts are as typed. */
export interface UsersCommand {
  name: 'link' | 'unlink';
  /** Id or address. */
  user: string;
  issuer: string;
  subject: string;
}

const ENVIRONMENT = `
The same environment variables and .env file as the service's say which database this is about.`;

/** Gives `users` its commands, which work on the database: for operators, also where signing in is impossible. */
export function defineUsers(users: Command, execute: (command: UsersCommand) => Promise<void>): void {
  users.description('link users with sign-ins of the identity provider').addHelpText('after', ENVIRONMENT);
  for (const [name, description] of [
    ['link', 'let who signs in there as this subject be the user with this id or address'],
    ['unlink', 'take that away again, also from the only way in'],
  ] as const) {
    users
      .command(`${name} <user>`)
      .description(description)
      .requiredOption('--subject <subject>', "the person's id at the issuer (claim OIDC_USER_CLAIM)")
      .option('--issuer <issuer>', 'by default OIDC_ISSUER')
      .action(async (user, { subject, issuer = '' }) => {
        await execute({ name, user, subject, issuer });
      });
  }
}
