import { ApiSchema } from '@nestjs/swagger';
import { Text } from '../../common/validation/text.decorator.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../custom-secret-name.js';

/** Body of `POST /api/secrets`. */
@ApiSchema({ name: 'CreateCustomSecret' })
export class CreateSecretDto {
  @Text({
    required: true,
    description: 'Letters, digits and underscores, not starting with a digit; unique.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name: string;

  @Text({ required: true, secret: true, description: 'The value; may be empty.', example: 'secret-example' })
  value: string;

  @Text({ nullable: true, description: 'What it is for.', example: 'Token of the deployment service' })
  description?: string | null;
}
