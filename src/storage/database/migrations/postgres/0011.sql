-- Schema 11: the crop of the uri by which a delivery was asked for, `-crop_w…_h…_x…_y…`; what nodes say of
-- themselves, and what they cannot do now.
ALTER TABLE deliveries ADD COLUMN crop TEXT;
ALTER TABLE nodes ADD COLUMN about TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN faults TEXT NOT NULL DEFAULT '';
