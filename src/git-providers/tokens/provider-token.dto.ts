import { isIn } from 'class-validator';
import { must } from '../../common/validation/field.js';
import { NestedMap, Text } from '../../common/validation/field-decorators.js';
import { PROVIDER_TYPES } from '../git-provider.js';
import { type ProviderTokenInput, TOKEN_FORM } from './plan-token-changes.js';

const MAX_ACCOUNT_ID_LENGTH = 255;

class ProviderTokenDto implements ProviderTokenInput {
  @Text(
    'Token of the user at the provider. Absent, null or blank keeps the stored one. Bitbucket Cloud: `email:api_token`, or an OAuth or access token.',
    { nullable: true, secret: true, example: 'ghp_exampleExampleExampleExampleExample1', form: TOKEN_FORM },
  )
  token?: string | null;

  @Text(
    'Host of a self-managed installation; the operator must have allowed it. Absent, null or blank: the public service beside a new token, else the stored host. Another host needs the token again.',
    { nullable: true, example: 'git.example.com' },
  )
  host?: string | null;

  @Text('Id of the account at the provider; stored as given.', {
    nullable: true,
    example: '583231',
    form: { maxLength: MAX_ACCOUNT_ID_LENGTH },
    rule: (text) =>
      text.length <= MAX_ACCOUNT_ID_LENGTH
        ? null
        : `Expected an account id of at most ${MAX_ACCOUNT_ID_LENGTH} characters.`,
  })
  user_id?: string | null;
}

/** Arrives as `ProviderTokenInputs`: a null map counts as absent, a null entry removes the token. */
export function ProviderTokenMap(): PropertyDecorator {
  const providers = PROVIDER_TYPES.join(', ');
  return NestedMap(
    `Tokens by provider (${providers}). Providers left out keep their token, null removes it.`,
    {
      type: ProviderTokenDto,
      nullIsAbsent: true,
      nullableValues: true,
      keyRule: must((key) => isIn(key, PROVIDER_TYPES), 'enum', `Expected one of: ${providers}.`),
      keySchema: { enum: PROVIDER_TYPES },
      example: { github: { token: 'ghp_exampleExampleExampleExampleExample1' }, gitlab: null },
    },
  );
}
