import { Identifier } from '../../common/validation/identifier.decorator.js';

/** Path of `/api/v1/users/{id}`. */
export class UserIdDto {
  @Identifier({ required: true, description: 'Id of the user.' })
  id: string;
}
