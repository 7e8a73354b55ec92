-- Schema 11: the crop of the uri by which a delivery was asked for, `-crop_w…_h…_x…_y…`.
ALTER TABLE deliveries ADD COLUMN crop TEXT;
