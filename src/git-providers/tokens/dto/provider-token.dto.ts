import { ApiSchema } from '@nestjs/swagger';
import { Text } from '../../../common/validation/text.decorator.js';
import type { ProviderTokenInput } from '../provider-token-input.js';

const MAX_ACCOUNT_ID_LENGTH = 255;

/** One provider's entry of a `provider_tokens` map. Members it does not list are ignored. */
@ApiSchema({ name: 'ProviderToken' })
export class ProviderTokenDto implements ProviderTokenInput {
  @Text({
    nullable: true,
    secret: true,
    description:
      'Token of the user at the provider. Absent, null or blank keeps the stored one. Bitbucket Cloud: `email:api_token`, or an OAuth or access token.',
    example: 'ghp_exampleExampleExampleExampleExample1',
  })
  token?: string | null;

  @Text({
    nullable: true,
    description:
      'Host of a self-managed installation; the operator must have allowed it. Absent, null or blank: the public service beside a new token, else the stored host. Another host needs the token again.',
    example: 'git.example.com',
  })
  host?: string | null;

  @Text({
    nullable: true,
    description: 'Id of the account at the provider; stored as given.',
    example: '583231',
    form: { maxLength: MAX_ACCOUNT_ID_LENGTH },
    rule: (text) =>
      text.length <= MAX_ACCOUNT_ID_LENGTH
        ? null
        : `Expected an account id of at most ${MAX_ACCOUNT_ID_LENGTH} characters.`,
  })
  user_id?: string | null;
}
